package main

import (
	"encoding/json"
	"fmt"
	"io"

	cloudprovider "k8s.io/cloud-provider"
)

// providerName is the name for --cloud-provider and the scheme of provider IDs.
const providerName = "local"

// cloud is the simulated cloud, as the framework sees it.
type cloud struct {
	api       *client
	instances *instances
}

// settings is the file for --cloud-config.
type settings struct {
	Endpoint string `json:"endpoint"`
	Token    string `json:"token"`
	// LookUp asks for machines of known IDs one by one, as some vendors do, and not from a list.
	LookUp bool `json:"lookUp"`
}

func init() {
	cloudprovider.RegisterCloudProvider(providerName, func(file io.Reader) (cloudprovider.Interface, error) {
		if file == nil {
			return nil, fmt.Errorf("--cloud-config is missing")
		}
		var read settings
		if err := json.NewDecoder(file).Decode(&read); err != nil {
			return nil, fmt.Errorf("--cloud-config: %w", err)
		}
		api := newClient(read)
		return &cloud{api: api, instances: &instances{api: api}}, nil
	})
}

func (c *cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}
func (c *cloud) ProviderName() string                                              { return providerName }
func (c *cloud) HasClusterID() bool                                                { return true }
func (c *cloud) Instances() (cloudprovider.Instances, bool)                        { return nil, false }
func (c *cloud) InstancesV2() (cloudprovider.InstancesV2, bool)                    { return c.instances, true }
func (c *cloud) Zones() (cloudprovider.Zones, bool)                                { return nil, false }
func (c *cloud) Clusters() (cloudprovider.Clusters, bool)                          { return nil, false }
func (c *cloud) Routes() (cloudprovider.Routes, bool)                              { return &routes{c.api, c.instances}, true }
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool)                  { return &balancers{c.api}, true }
