package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"
)

// freshFor is how long a list of all machines serves.
const freshFor = 10 * time.Second

type machine struct {
	ID        uint64  `json:"id"`
	Name      string  `json:"name"`
	UUID      string  `json:"uuid"`
	State     string  `json:"state"`
	Type      string  `json:"type"`
	Zone      string  `json:"zone"`
	Region    string  `json:"region"`
	Hostname  *string `json:"hostname"`
	Addresses []struct {
		IP    string `json:"ip"`
		Scope string `json:"scope"`
	} `json:"addresses"`
}

// instances answers from a list of all machines that is read again when it is old.
type instances struct {
	api     *client
	mutex   sync.Mutex
	listed  time.Time
	project string
	byID    map[uint64]*machine
	byName  map[string]*machine
}

func (i *instances) refresh(ctx context.Context) error {
	if time.Since(i.listed) < freshFor {
		return nil
	}
	if i.project == "" {
		var scope struct {
			Project string `json:"project"`
		}
		if err := i.api.call(ctx, "GET", "/v1/scope", nil, &scope); err != nil {
			return err
		}
		i.project = scope.Project
	}
	machines, err := list[machine](ctx, i.api, "/v1/machines")
	if err != nil {
		return err
	}
	i.byID = make(map[uint64]*machine, len(machines))
	i.byName = make(map[string]*machine, len(machines))
	for index := range machines {
		found := &machines[index]
		if found.State == "deleted" {
			continue
		}
		i.byID[found.ID] = found
		i.byName[found.Name] = found
	}
	i.listed = time.Now()
	return nil
}

func (i *instances) find(ctx context.Context, node *v1.Node) (*machine, error) {
	if i.api.LookUp && node.Spec.ProviderID != "" {
		return i.lookUp(ctx, node.Spec.ProviderID)
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if err := i.refresh(ctx); err != nil {
		return nil, err
	}
	if node.Spec.ProviderID == "" {
		return i.byName[node.Name], nil
	}
	number, err := machineOf(node.Spec.ProviderID)
	if err != nil {
		return nil, err
	}
	return i.byID[number], nil
}

// lookUp asks for one machine. The framework takes a 404 for proof that it is gone.
func (i *instances) lookUp(ctx context.Context, providerID string) (*machine, error) {
	number, err := machineOf(providerID)
	if err != nil {
		return nil, err
	}
	var found machine
	err = i.api.call(ctx, "GET", fmt.Sprintf("/v1/machines/%d", number), nil, &found)
	if isNotFound(err) || (err == nil && found.State == "deleted") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

func machineOf(providerID string) (uint64, error) {
	parts := strings.Split(strings.TrimPrefix(providerID, providerName+"://"), "/")
	return strconv.ParseUint(parts[len(parts)-1], 10, 64)
}

func (i *instances) InstanceExists(ctx context.Context, node *v1.Node) (bool, error) {
	found, err := i.find(ctx, node)
	return found != nil, err
}

func (i *instances) InstanceShutdown(ctx context.Context, node *v1.Node) (bool, error) {
	found, err := i.find(ctx, node)
	if err != nil || found == nil {
		return false, err
	}
	return found.State == "off", nil
}

func (i *instances) InstanceMetadata(ctx context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	found, err := i.find(ctx, node)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("node %s: %w", node.Name, cloudprovider.InstanceNotFound)
	}
	hostname := found.Name
	if found.Hostname != nil {
		hostname = *found.Hostname
	}
	addresses := []v1.NodeAddress{{Type: v1.NodeHostName, Address: hostname}}
	for _, address := range found.Addresses {
		kind := v1.NodeInternalIP
		if address.Scope == "public" {
			kind = v1.NodeExternalIP
		}
		addresses = append(addresses, v1.NodeAddress{Type: kind, Address: address.IP})
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:    fmt.Sprintf("%s://%s/%d", providerName, i.project, found.ID),
		InstanceType:  found.Type,
		NodeAddresses: addresses,
		Zone:          found.Zone,
		Region:        found.Region,
	}, nil
}
