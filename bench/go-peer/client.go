package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// client speaks the REST API of the simulated cloud.
type client struct {
	settings
	http *http.Client
}

func newClient(read settings) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	return &client{read, &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

// refusal is an answer that is not a success.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.text) }

func isNotFound(err error) bool {
	refused, ok := err.(*refusal)
	return ok && refused.status == http.StatusNotFound
}

// call sends a request and reads the answer; body and answer may be nil.
func (c *client) call(ctx context.Context, method, path string, body, answer any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Endpoint+path, &sent)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var read bytes.Buffer
	if _, err := read.ReadFrom(response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return &refusal{response.StatusCode, read.String()}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(read.Bytes(), answer)
}

type page[T any] struct {
	Items []T `json:"items"`
	Page  struct {
		Next *string `json:"next"`
	} `json:"page"`
}

// list reads every page.
func list[T any](ctx context.Context, c *client, path string) ([]T, error) {
	var all []T
	for next := &path; next != nil; {
		var got page[T]
		if err := c.call(ctx, http.MethodGet, *next, nil, &got); err != nil {
			return nil, err
		}
		all = append(all, got.Items...)
		next = got.Page.Next
	}
	return all, nil
}
