// hcloud-probe makes, with Hetzner's own Go client, the calls that hcloud-cloud-controller-manager makes,
// in its order: start-up, a Node, a Service from first sight to its end, and a route. It ends with status 1
// and says why as soon as an answer is not what the controller needs.
//
// It reads HCLOUD_ENDPOINT, HCLOUD_TOKEN, HCLOUD_NETWORK and PROBE_NODES (names, separated by commas).
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

const serviceUID = "3f0f2d2e-7d5c-4f0e-9c57-0d9f1a1b2c3d"

// name is what the framework calls a balancer by default.
var name = ("a" + strings.ReplaceAll(serviceUID, "-", ""))[:32]

type probe struct {
	ctx     context.Context
	client  *hcloud.Client
	network *hcloud.Network
	servers []*hcloud.Server
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := hcloud.NewClient(
		hcloud.WithEndpoint(os.Getenv("HCLOUD_ENDPOINT")),
		hcloud.WithToken(os.Getenv("HCLOUD_TOKEN")),
		hcloud.WithApplication("hcloud-probe", "1"),
		hcloud.WithPollOpts(hcloud.PollOpts{BackoffFunc: hcloud.ConstantBackoff(20 * time.Millisecond)}),
	)
	p := &probe{ctx: ctx, client: client}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"start", p.start},
		{"nodes", p.nodes},
		{"service", p.service},
		{"certificate", p.certificate},
		{"route", p.route},
		{"refusals", p.refusals},
	} {
		if err := step.run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", step.name, err)
			os.Exit(1)
		}
		fmt.Println(step.name)
	}
}

// start finds the network and proves the token.
func (p *probe) start() error {
	network, _, err := p.client.Network.Get(p.ctx, os.Getenv("HCLOUD_NETWORK"))
	if err != nil {
		return err
	}
	if network == nil {
		return fmt.Errorf("network not found")
	}
	p.network = network
	_, _, err = p.client.Location.List(p.ctx, hcloud.LocationListOpts{})
	return err
}

// nodes looks servers up in each way that the controller knows.
func (p *probe) nodes() error {
	all, err := p.client.Server.All(p.ctx)
	if err != nil {
		return err
	}
	for _, node := range strings.Split(os.Getenv("PROBE_NODES"), ",") {
		server, _, err := p.client.Server.GetByName(p.ctx, node)
		if err != nil {
			return err
		}
		if server == nil {
			return fmt.Errorf("server %s not found by name", node)
		}
		again, _, err := p.client.Server.GetByID(p.ctx, server.ID)
		if err != nil {
			return err
		}
		if again == nil || again.Name != node {
			return fmt.Errorf("server %s not found by ID", node)
		}
		if server.ServerType.Name == "" || server.Location.Name == "" || server.PublicNet.IPv4.IP == nil {
			return fmt.Errorf("server %s lacks its type, location or address: %+v", node, server)
		}
		if len(server.PrivateNet) != 1 || server.PrivateNet[0].Network.ID != p.network.ID {
			return fmt.Errorf("server %s is not in the network: %+v", node, server.PrivateNet)
		}
		p.servers = append(p.servers, server)
	}
	if len(all) < len(p.servers) {
		return fmt.Errorf("%d servers listed, %d found by name", len(all), len(p.servers))
	}
	gone, _, err := p.client.Server.GetByID(p.ctx, 1)
	if gone != nil || err != nil {
		return fmt.Errorf("a server that is not there: %v, %v", gone, err)
	}
	return nil
}

func (p *probe) wait(action *hcloud.Action, _ *hcloud.Response, err error) error {
	if err != nil {
		return err
	}
	return p.client.Action.WaitFor(p.ctx, action)
}

func (p *probe) find() (*hcloud.LoadBalancer, error) {
	opts := hcloud.LoadBalancerListOpts{
		ListOpts: hcloud.ListOpts{LabelSelector: "hcloud-ccm/service-uid=" + serviceUID},
	}
	found, err := p.client.LoadBalancer.AllWithOpts(p.ctx, opts)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d balancers with the label", len(found))
	}
	return found[0], nil
}

// service walks through the life of a Service with one port and all nodes.
func (p *probe) service() error {
	if lb, err := p.find(); lb != nil || err == nil {
		return fmt.Errorf("a balancer is there before its time")
	}
	if lb, _, err := p.client.LoadBalancer.GetByName(p.ctx, name); lb != nil || err != nil {
		return fmt.Errorf("by name: %v, %v", lb, err)
	}
	lb, err := p.create()
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := p.settle(lb); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if lb, err = p.find(); err != nil {
		return err
	}
	if err := p.check(lb); err != nil {
		return err
	}
	if err := p.change(lb); err != nil {
		return fmt.Errorf("change: %w", err)
	}
	if _, err := p.client.LoadBalancer.Delete(p.ctx, lb); err != nil {
		return err
	}
	_, err = p.client.LoadBalancer.Delete(p.ctx, lb)
	if !hcloud.IsError(err, hcloud.ErrorCodeNotFound) {
		return fmt.Errorf("deleting twice: %v", err)
	}
	return nil
}

func (p *probe) create() (*hcloud.LoadBalancer, error) {
	types, err := p.client.LoadBalancerType.All(p.ctx)
	if err != nil {
		return nil, err
	}
	var lb11 *hcloud.LoadBalancerType
	for _, kind := range types {
		if kind.Name == "lb11" {
			lb11 = kind
		}
	}
	result, _, err := p.client.LoadBalancer.Create(p.ctx, hcloud.LoadBalancerCreateOpts{
		Name:             name,
		LoadBalancerType: lb11,
		Location:         &hcloud.Location{Name: "fsn1"},
		Labels:           map[string]string{"hcloud-ccm/service-uid": serviceUID},
	})
	if err != nil {
		return nil, err
	}
	if err := p.client.Action.WaitFor(p.ctx, result.Action); err != nil {
		return nil, err
	}
	lb, _, err := p.client.LoadBalancer.GetByID(p.ctx, result.LoadBalancer.ID)
	return lb, err
}

// settle attaches the network, then adds the port and the targets.
func (p *probe) settle(lb *hcloud.LoadBalancer) error {
	client := &p.client.LoadBalancer
	attach := hcloud.LoadBalancerAttachToNetworkOpts{Network: p.network}
	if err := p.wait(client.AttachToNetwork(p.ctx, lb, attach)); err != nil {
		return err
	}
	listen, node := 80, 30080
	service := hcloud.LoadBalancerAddServiceOpts{
		Protocol:        hcloud.LoadBalancerServiceProtocolTCP,
		ListenPort:      &listen,
		DestinationPort: &node,
		HealthCheck: &hcloud.LoadBalancerAddServiceOptsHealthCheck{
			Protocol: hcloud.LoadBalancerServiceProtocolTCP,
			Port:     &node,
		},
	}
	if err := p.wait(client.AddService(p.ctx, lb, service)); err != nil {
		return err
	}
	private := true
	for _, server := range p.servers {
		target := hcloud.LoadBalancerAddServerTargetOpts{Server: server, UsePrivateIP: &private}
		if err := p.wait(client.AddServerTarget(p.ctx, lb, target)); err != nil {
			return err
		}
	}
	_, _, err := client.GetByID(p.ctx, lb.ID)
	return err
}

func (p *probe) check(lb *hcloud.LoadBalancer) error {
	switch {
	case lb.PublicNet.IPv4.IP == nil || lb.PublicNet.IPv6.IP == nil:
		return fmt.Errorf("no public addresses: %+v", lb.PublicNet)
	case len(lb.PrivateNet) != 1 || lb.PrivateNet[0].IP == nil:
		return fmt.Errorf("no private address: %+v", lb.PrivateNet)
	case len(lb.Services) != 1 || lb.Services[0].HealthCheck.Port != 30080:
		return fmt.Errorf("services: %+v", lb.Services)
	case len(lb.Targets) != len(p.servers):
		return fmt.Errorf("%d targets for %d nodes", len(lb.Targets), len(p.servers))
	}
	for _, target := range lb.Targets {
		if !target.UsePrivateIP || len(target.HealthStatus) != 1 {
			return fmt.Errorf("target: %+v", target)
		}
	}
	return nil
}

// change does once whatever an annotation can make the controller do later.
func (p *probe) change(lb *hcloud.LoadBalancer) error {
	client := &p.client.LoadBalancer
	update := hcloud.LoadBalancerUpdateOpts{Name: name + "-b", Labels: lb.Labels}
	if _, _, err := client.Update(p.ctx, lb, update); err != nil {
		return err
	}
	pointer := "lb.example.com"
	if err := p.wait(client.ChangeDNSPtr(p.ctx, lb, lb.PublicNet.IPv4.IP.String(), &pointer)); err != nil {
		return err
	}
	algorithm := hcloud.LoadBalancerChangeAlgorithmOpts{Type: hcloud.LoadBalancerAlgorithmTypeLeastConnections}
	if err := p.wait(client.ChangeAlgorithm(p.ctx, lb, algorithm)); err != nil {
		return err
	}
	bigger := hcloud.LoadBalancerChangeTypeOpts{LoadBalancerType: &hcloud.LoadBalancerType{Name: "lb21"}}
	if err := p.wait(client.ChangeType(p.ctx, lb, bigger)); err != nil {
		return err
	}
	if err := p.wait(client.DisablePublicInterface(p.ctx, lb)); err != nil {
		return err
	}
	if err := p.wait(client.EnablePublicInterface(p.ctx, lb)); err != nil {
		return err
	}
	node := 30081
	service := hcloud.LoadBalancerUpdateServiceOpts{
		Protocol:        hcloud.LoadBalancerServiceProtocolTCP,
		DestinationPort: &node,
	}
	if err := p.wait(client.UpdateService(p.ctx, lb, 80, service)); err != nil {
		return err
	}
	if err := p.wait(client.DeleteService(p.ctx, lb, 80)); err != nil {
		return err
	}
	for _, server := range p.servers {
		if err := p.wait(client.RemoveServerTarget(p.ctx, lb, server)); err != nil {
			return err
		}
	}
	detach := hcloud.LoadBalancerDetachFromNetworkOpts{Network: p.network}
	return p.wait(client.DetachFromNetwork(p.ctx, lb, detach))
}

// certificate has one issued, waits for it, and finds it by its label.
func (p *probe) certificate() error {
	labels := map[string]string{"hcloud-ccm/service-uid": serviceUID}
	opts := hcloud.CertificateCreateOpts{
		Name:        "ccm-managed-certificate-" + serviceUID,
		Type:        hcloud.CertificateTypeManaged,
		DomainNames: []string{"example.com"},
		Labels:      labels,
	}
	result, _, err := p.client.Certificate.CreateCertificate(p.ctx, opts)
	if err != nil {
		return err
	}
	if err := p.client.Action.WaitFor(p.ctx, result.Action); err != nil {
		return err
	}
	_, _, err = p.client.Certificate.CreateCertificate(p.ctx, opts)
	if !hcloud.IsError(err, hcloud.ErrorCodeUniquenessError) {
		return fmt.Errorf("creating twice: %v", err)
	}
	found, err := p.client.Certificate.AllWithOpts(p.ctx, hcloud.CertificateListOpts{
		ListOpts: hcloud.ListOpts{LabelSelector: "hcloud-ccm/service-uid=" + serviceUID},
	})
	if err != nil {
		return err
	}
	if len(found) != 1 || found[0].Status.Issuance != hcloud.CertificateStatusTypeCompleted {
		return fmt.Errorf("%d certificates: %+v", len(found), found)
	}
	return nil
}

// route leads the pods of the first node through it, and no longer.
func (p *probe) route() error {
	_, pods, err := net.ParseCIDR("10.244.0.0/24")
	if err != nil {
		return err
	}
	route := hcloud.NetworkRoute{Destination: pods, Gateway: p.servers[0].PrivateNet[0].IP}
	add := hcloud.NetworkAddRouteOpts{Route: route}
	if err := p.wait(p.client.Network.AddRoute(p.ctx, p.network, add)); err != nil {
		return err
	}
	network, _, err := p.client.Network.GetByID(p.ctx, p.network.ID)
	if err != nil {
		return err
	}
	if len(network.Routes) != 1 || !network.Routes[0].Gateway.Equal(route.Gateway) {
		return fmt.Errorf("routes: %+v", network.Routes)
	}
	gone := hcloud.NetworkDeleteRouteOpts{Route: route}
	return p.wait(p.client.Network.DeleteRoute(p.ctx, p.network, gone))
}

// refusals checks that errors are understood by the client.
func (p *probe) refusals() error {
	_, _, err := p.client.LoadBalancer.Create(p.ctx, hcloud.LoadBalancerCreateOpts{
		Name:             "x",
		LoadBalancerType: &hcloud.LoadBalancerType{Name: "lb11"},
		Location:         &hcloud.Location{Name: "nowhere"},
	})
	if !hcloud.IsError(err, hcloud.ErrorCodeInvalidInput) {
		return fmt.Errorf("a wrong location: %v", err)
	}
	apiErr, _ := err.(hcloud.Error)
	details, ok := apiErr.Details.(hcloud.ErrorDetailsInvalidInput)
	if !ok || len(details.Fields) != 1 || details.Fields[0].Name != "location" {
		return fmt.Errorf("details of a wrong location: %+v", apiErr.Details)
	}
	stranger := hcloud.NewClient(hcloud.WithEndpoint(os.Getenv("HCLOUD_ENDPOINT")), hcloud.WithToken("stranger"))
	_, err = stranger.Server.All(p.ctx)
	if !hcloud.IsError(err, hcloud.ErrorCodeUnauthorized) {
		return fmt.Errorf("a wrong token: %v", err)
	}
	return nil
}
