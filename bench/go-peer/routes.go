package main

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"
)

type hop struct {
	Machine *uint64 `json:"machine,omitempty"`
	IP      *string `json:"ip,omitempty"`
}

type route struct {
	ID          uint64 `json:"id,omitempty"`
	Destination string `json:"destination"`
	Hop         hop    `json:"hop"`
	Blackhole   bool   `json:"blackhole,omitempty"`
}

// newRoute is what the cloud takes: no ID, no state.
type newRoute struct {
	Destination string `json:"destination"`
	Hop         hop    `json:"hop"`
}

type routes struct {
	api       *client
	instances *instances
}

func (r *routes) ListRoutes(ctx context.Context, _ string) ([]*cloudprovider.Route, error) {
	known, err := list[route](ctx, r.api, "/v1/routes")
	if err != nil {
		return nil, err
	}
	r.instances.mutex.Lock()
	defer r.instances.mutex.Unlock()
	if err := r.instances.refresh(ctx); err != nil {
		return nil, err
	}
	var listed []*cloudprovider.Route
	for _, one := range known {
		found := &cloudprovider.Route{
			Name:            fmt.Sprint(one.ID),
			DestinationCIDR: one.Destination,
			Blackhole:       one.Blackhole,
		}
		if one.Hop.Machine != nil {
			if target := r.instances.byID[*one.Hop.Machine]; target != nil {
				found.TargetNode = types.NodeName(target.Name)
			}
		}
		listed = append(listed, found)
	}
	return listed, nil
}

func (r *routes) CreateRoute(ctx context.Context, _, _ string, wanted *cloudprovider.Route) error {
	r.instances.mutex.Lock()
	err := r.instances.refresh(ctx)
	target := r.instances.byName[string(wanted.TargetNode)]
	r.instances.mutex.Unlock()
	if err != nil {
		return err
	}
	if target == nil {
		return fmt.Errorf("node %s: %w", wanted.TargetNode, cloudprovider.InstanceNotFound)
	}
	body := newRoute{wanted.DestinationCIDR, hop{Machine: &target.ID}}
	return r.api.call(ctx, http.MethodPost, "/v1/routes", body, nil)
}

func (r *routes) DeleteRoute(ctx context.Context, _ string, known *cloudprovider.Route) error {
	err := r.api.call(ctx, http.MethodDelete, "/v1/routes/"+known.Name, nil, nil)
	if isNotFound(err) {
		return nil
	}
	return err
}
