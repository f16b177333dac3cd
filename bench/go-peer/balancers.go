package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

// poll is the pause between two looks at a balancer that is being built.
const poll = time.Second

type listener struct {
	Protocol   string `json:"protocol"`
	Port       int32  `json:"port"`
	TargetPort int32  `json:"targetPort"`
}

type target struct {
	Machine *uint64 `json:"machine,omitempty"`
}

type balancer struct {
	ID        uint64     `json:"id"`
	State     string     `json:"state"`
	Addresses []string   `json:"addresses"`
	Listeners []listener `json:"listeners"`
	Targets   []target   `json:"targets"`
}

type balancers struct{ api *client }

func (b *balancers) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

func (b *balancers) find(ctx context.Context, service *v1.Service) (*balancer, error) {
	name := cloudprovider.DefaultLoadBalancerName(service)
	found, err := list[balancer](ctx, b.api, "/v1/balancers?name="+url.QueryEscape(name))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func status(of *balancer) *v1.LoadBalancerStatus {
	status := &v1.LoadBalancerStatus{}
	for _, address := range of.Addresses {
		status.Ingress = append(status.Ingress, v1.LoadBalancerIngress{IP: address})
	}
	return status
}

func (b *balancers) GetLoadBalancer(ctx context.Context, _ string, service *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	found, err := b.find(ctx, service)
	if err != nil || found == nil {
		return nil, false, err
	}
	return status(found), true, nil
}

func (b *balancers) EnsureLoadBalancer(ctx context.Context, _ string, service *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	found, err := b.find(ctx, service)
	if err != nil {
		return nil, err
	}
	if found == nil {
		body := map[string]any{
			"name":      cloudprovider.DefaultLoadBalancerName(service),
			"listeners": listenersOf(service),
			"targets":   targetsOf(nodes),
		}
		if err := b.api.call(ctx, http.MethodPost, "/v1/balancers", body, nil); err != nil {
			return nil, err
		}
	} else {
		if err := b.setListeners(ctx, found, listenersOf(service)); err != nil {
			return nil, err
		}
		if err := b.setTargets(ctx, found, targetsOf(nodes)); err != nil {
			return nil, err
		}
	}
	return b.built(ctx, service)
}

// built waits until the balancer has its addresses.
func (b *balancers) built(ctx context.Context, service *v1.Service) (*v1.LoadBalancerStatus, error) {
	for {
		found, err := b.find(ctx, service)
		if err != nil {
			return nil, err
		}
		if found != nil && found.State == "active" && len(found.Addresses) > 0 {
			return status(found), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(poll):
		}
	}
}

func (b *balancers) setListeners(ctx context.Context, of *balancer, wanted []listener) error {
	if reflect.DeepEqual(of.Listeners, wanted) {
		return nil
	}
	body := map[string]any{"listeners": wanted}
	return b.api.call(ctx, http.MethodPut, fmt.Sprintf("/v1/balancers/%d/listeners", of.ID), body, nil)
}

func (b *balancers) setTargets(ctx context.Context, of *balancer, wanted []target) error {
	missing := map[uint64]bool{}
	for _, one := range wanted {
		missing[*one.Machine] = true
	}
	var add, remove []target
	for _, one := range of.Targets {
		if one.Machine != nil && !missing[*one.Machine] {
			remove = append(remove, one)
		}
		if one.Machine != nil {
			delete(missing, *one.Machine)
		}
	}
	for _, one := range wanted {
		if missing[*one.Machine] {
			add = append(add, one)
		}
	}
	if len(add)+len(remove) == 0 {
		return nil
	}
	body := map[string]any{}
	if len(add) > 0 {
		body["add"] = add
	}
	if len(remove) > 0 {
		body["remove"] = remove
	}
	return b.api.call(ctx, http.MethodPost, fmt.Sprintf("/v1/balancers/%d/targets", of.ID), body, nil)
}

func (b *balancers) UpdateLoadBalancer(ctx context.Context, _ string, service *v1.Service, nodes []*v1.Node) error {
	found, err := b.find(ctx, service)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("service %s/%s has no balancer", service.Namespace, service.Name)
	}
	return b.setTargets(ctx, found, targetsOf(nodes))
}

func (b *balancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, service *v1.Service) error {
	found, err := b.find(ctx, service)
	if err != nil || found == nil {
		return err
	}
	err = b.api.call(ctx, http.MethodDelete, fmt.Sprintf("/v1/balancers/%d", found.ID), nil, nil)
	if isNotFound(err) {
		return nil
	}
	return err
}

// listenersOf is in the order in which the cloud lists them.
func listenersOf(service *v1.Service) []listener {
	var wanted []listener
	for _, port := range service.Spec.Ports {
		protocol := strings.ToLower(string(port.Protocol))
		wanted = append(wanted, listener{protocol, port.Port, port.NodePort})
	}
	sort.Slice(wanted, func(i, j int) bool {
		if wanted[i].Protocol != wanted[j].Protocol {
			return wanted[i].Protocol < wanted[j].Protocol
		}
		return wanted[i].Port < wanted[j].Port
	})
	return wanted
}

func targetsOf(nodes []*v1.Node) []target {
	wanted := []target{}
	for _, node := range nodes {
		if id, err := machineOf(node.Spec.ProviderID); err == nil {
			wanted = append(wanted, target{Machine: &id})
		}
	}
	return wanted
}
