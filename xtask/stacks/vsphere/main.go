// vCenters for tests: govmomi's simulator with its tagging API, and a second API that makes vCenters, puts virtual
// machines and tags into them, and lets them fail.
//
// It prints VCSIM_CONTROL=<address of the second API> and an empty line, and ends with its standard input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

// Lab has all vCenters.
type Lab struct {
	sync.Mutex
	next     int
	vcenters map[string]*VCenter
}

func main() {
	lab := &Lab{vcenters: map[string]*VCenter{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { _ = http.Serve(listener, lab.routes()) }()
	fmt.Printf("VCSIM_CONTROL=http://%s\n\n", listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	lab.closeAll()
}

func (lab *Lab) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /vcenters", handle(lab.create))
	of := func(act func(context.Context, *VCenter, *http.Request) (any, error)) http.HandlerFunc {
		return handle(func(r *http.Request) (any, error) {
			vcenter, err := lab.get(r.PathValue("id"))
			if err != nil {
				return nil, err
			}
			return act(r.Context(), vcenter, r)
		})
	}
	mux.HandleFunc("DELETE /vcenters/{id}", handle(lab.remove))
	mux.HandleFunc("POST /vcenters/{id}/vms", of(addMachine))
	mux.HandleFunc("PATCH /vcenters/{id}/vms/{vm}", of(changeMachine))
	mux.HandleFunc("DELETE /vcenters/{id}/vms/{vm}", of(destroyMachine))
	mux.HandleFunc("POST /vcenters/{id}/tags", of(attachTag))
	mux.HandleFunc("POST /vcenters/{id}/faults", of(setFaults))
	mux.HandleFunc("GET /vcenters/{id}/calls", of(calls))
	return mux
}

func handle(act func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := act(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (lab *Lab) create(r *http.Request) (any, error) {
	spec := Spec{Datacenters: 1, Clusters: 1, Hosts: 2, User: "user", Password: "pass"}
	if err := json.NewDecoder(r.Body).Decode(&spec); err != nil {
		return nil, err
	}
	vcenter, err := newVCenter(spec)
	if err != nil {
		return nil, err
	}
	lab.Lock()
	defer lab.Unlock()
	lab.next++
	id := fmt.Sprint(lab.next)
	lab.vcenters[id] = vcenter
	return vcenter.description(id), nil
}

func (lab *Lab) get(id string) (*VCenter, error) {
	lab.Lock()
	defer lab.Unlock()
	vcenter, ok := lab.vcenters[id]
	if !ok {
		return nil, fmt.Errorf("there is no vCenter %q", id)
	}
	return vcenter, nil
}

func (lab *Lab) remove(r *http.Request) (any, error) {
	vcenter, err := lab.get(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	lab.Lock()
	delete(lab.vcenters, r.PathValue("id"))
	lab.Unlock()
	vcenter.close()
	return nil, nil
}

func (lab *Lab) closeAll() {
	lab.Lock()
	defer lab.Unlock()
	for _, vcenter := range lab.vcenters {
		vcenter.close()
	}
}
