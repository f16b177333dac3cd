// godo-probe makes, with DigitalOcean's own Go client, the calls that digitalocean-cloud-controller-manager makes, in
// its order: start-up, a Node, a Service from first sight to its end, its tag, and the firewall. It ends with status 1
// and says why as soon as an answer is not what the controller needs.
//
// It reads DO_OVERRIDE_URL, DO_ACCESS_TOKEN, REGION, PROBE_NODES (names, separated by commas) and PROBE_CERTIFICATE.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/digitalocean/godo"
	"golang.org/x/oauth2"
)

const (
	serviceUID = "3f0f2d2e-7d5c-4f0e-9c57-0d9f1a1b2c3d"
	clusterTag = "k8s:probe"
	firewall   = "probe-public-access"
)

// name is what the framework calls a balancer by default.
var name = ("a" + strings.ReplaceAll(serviceUID, "-", ""))[:32]

type probe struct {
	ctx      context.Context
	client   *godo.Client
	droplets []godo.Droplet
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	source := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: os.Getenv("DO_ACCESS_TOKEN")})
	client, err := godo.New(oauth2.NewClient(ctx, source), godo.SetBaseURL(os.Getenv("DO_OVERRIDE_URL")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p := &probe{ctx: ctx, client: client}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"start", p.start},
		{"nodes", p.nodes},
		{"service", p.service},
		{"certificate", p.certificate},
		{"firewall", p.firewall},
		{"refusals", p.refusals},
	} {
		if err := step.run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", step.name, err)
			os.Exit(1)
		}
		fmt.Println(step.name)
	}
}

// start proves the token and the region.
func (p *probe) start() error {
	account, response, err := p.client.Account.Get(p.ctx)
	if err != nil {
		return err
	}
	if account.UUID == "" || response.Rate.Limit != 5000 || response.Rate.Reset.IsZero() {
		return fmt.Errorf("no account or no rate limit: %+v %+v", account, response.Rate)
	}
	regions, _, err := p.client.Regions.List(p.ctx, nil)
	if err != nil {
		return err
	}
	for _, region := range regions {
		if region.Slug == os.Getenv("REGION") {
			return nil
		}
	}
	return fmt.Errorf("no region %q", os.Getenv("REGION"))
}

// all reads every page of a list, as the controller does.
func all[T any](list func(*godo.ListOptions) ([]T, *godo.Response, error)) ([]T, error) {
	options := &godo.ListOptions{Page: 1, PerPage: 50}
	items := []T{}
	for {
		page, response, err := list(options)
		if err != nil {
			return nil, err
		}
		items = append(items, page...)
		if response.Links == nil || response.Links.IsLastPage() {
			return items, nil
		}
		current, err := response.Links.CurrentPage()
		if err != nil {
			return nil, err
		}
		options.Page = current + 1
	}
}

// nodes looks droplets up in each way that the controller knows.
func (p *probe) nodes() error {
	listed, err := all(func(options *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		return p.client.Droplets.List(p.ctx, options)
	})
	if err != nil {
		return err
	}
	if len(listed) < 51 {
		return fmt.Errorf("%d droplets listed: a page was lost", len(listed))
	}
	for _, node := range strings.Split(os.Getenv("PROBE_NODES"), ",") {
		found, _, err := p.client.Droplets.ListByName(p.ctx, node, &godo.ListOptions{Page: 1, PerPage: 50})
		if err != nil {
			return err
		}
		if len(found) != 1 || found[0].Name != node {
			return fmt.Errorf("droplet %s not found by name: %+v", node, found)
		}
		droplet, _, err := p.client.Droplets.Get(p.ctx, found[0].ID)
		if err != nil {
			return err
		}
		private, _ := droplet.PrivateIPv4()
		public, _ := droplet.PublicIPv4()
		if private == "" || public == "" || droplet.SizeSlug == "" || droplet.Region.Slug == "" || droplet.Status != "active" {
			return fmt.Errorf("droplet %s lacks an address, its size, region or status: %+v", node, droplet)
		}
		p.droplets = append(p.droplets, *droplet)
	}
	_, response, err := p.client.Droplets.Get(p.ctx, 1)
	return expect(response, err, http.StatusNotFound, "could not be found")
}

func (p *probe) list() ([]godo.LoadBalancer, error) {
	return all(func(options *godo.ListOptions) ([]godo.LoadBalancer, *godo.Response, error) {
		return p.client.LoadBalancers.List(p.ctx, options)
	})
}

// request is what the controller builds for a Service with one port.
func (p *probe) request() *godo.LoadBalancerRequest {
	ids := []int{}
	for _, droplet := range p.droplets {
		ids = append(ids, droplet.ID)
	}
	dns := false
	return &godo.LoadBalancerRequest{
		Name:      name,
		Algorithm: "round_robin",
		Region:    os.Getenv("REGION"),
		Type:      godo.LoadBalancerTypeRegionalNetwork,
		Network:   godo.LoadBalancerNetworkTypeExternal,
		ForwardingRules: []godo.ForwardingRule{
			{EntryProtocol: "tcp", EntryPort: 80, TargetProtocol: "tcp", TargetPort: 80},
		},
		HealthCheck: &godo.HealthCheck{
			Protocol: "http", Port: 10256, Path: "/healthz", CheckIntervalSeconds: 3,
			ResponseTimeoutSeconds: 5, HealthyThreshold: 5, UnhealthyThreshold: 3,
			ProxyProtocol: godo.PtrTo(false),
		},
		StickySessions:               &godo.StickySessions{Type: "none"},
		DropletIDs:                   ids,
		Tags:                         []string{clusterTag},
		DisableLetsEncryptDNSRecords: &dns,
		Firewall:                     &godo.LBFirewall{},
		NetworkStack:                 godo.LoadBalancerNetworkStackDualstack,
	}
}

// service walks through the life of a Service with one port and all nodes.
func (p *probe) service() error {
	before, err := p.list()
	if err != nil || len(before) != 0 {
		return fmt.Errorf("before: %d balancers, %v", len(before), err)
	}
	request := p.request()
	request.ValidateOnly = true
	if _, _, err := p.client.LoadBalancers.Create(p.ctx, request); err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	made, _, err := p.client.LoadBalancers.Create(p.ctx, p.request())
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if made.Status != "new" || made.IP != "" {
		return fmt.Errorf("it should be new and have no address: %+v", made)
	}
	_, response, err := p.client.LoadBalancers.Update(p.ctx, made.ID, p.request())
	if err := expect(response, err, http.StatusForbidden, "processes previous actions"); err != nil {
		return fmt.Errorf("update too early: %w", err)
	}
	for made.Status == "new" {
		time.Sleep(20 * time.Millisecond)
		if made, _, err = p.client.LoadBalancers.Get(p.ctx, made.ID); err != nil {
			return err
		}
	}
	if made.Status != "active" || made.IP == "" || made.IPv6 == "" || len(made.DropletIDs) != len(p.droplets) || made.SizeUnit != 1 {
		return fmt.Errorf("it is not as asked for: %+v", made)
	}
	listed, err := p.list()
	if err != nil || len(listed) != 1 || listed[0].Name != name || listed[0].Tags[0] != clusterTag {
		return fmt.Errorf("listed: %+v, %v", listed, err)
	}
	if err := p.tag(made.ID); err != nil {
		return fmt.Errorf("tag: %w", err)
	}
	changed := p.request()
	changed.DropletIDs = changed.DropletIDs[:1]
	changed.Firewall = &godo.LBFirewall{Allow: []string{"cidr:10.0.0.0/8"}}
	updated, _, err := p.client.LoadBalancers.Update(p.ctx, made.ID, changed)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if len(updated.DropletIDs) != 1 || len(updated.Firewall.Allow) != 1 {
		return fmt.Errorf("the update is not shown: %+v", updated)
	}
	if _, err := p.client.LoadBalancers.Delete(p.ctx, made.ID); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	response, err = p.client.LoadBalancers.Delete(p.ctx, made.ID)
	return expect(response, err, http.StatusNotFound, "could not be found")
}

// tag is what the tag sync does for a tag that is not there yet.
func (p *probe) tag(id string) error {
	const tag = "k8s:late"
	request := &godo.TagResourcesRequest{Resources: []godo.Resource{{ID: id, Type: godo.LoadBalancerResourceType}}}
	response, err := p.client.Tags.TagResources(p.ctx, tag, request)
	if err := expect(response, err, http.StatusNotFound, "could not be found"); err != nil {
		return err
	}
	if _, _, err := p.client.Tags.Create(p.ctx, &godo.TagCreateRequest{Name: tag}); err != nil {
		return err
	}
	if _, err := p.client.Tags.TagResources(p.ctx, tag, request); err != nil {
		return err
	}
	lb, _, err := p.client.LoadBalancers.Get(p.ctx, id)
	if err != nil || len(lb.Tags) != 2 {
		return fmt.Errorf("the tag is not shown: %+v, %v", lb, err)
	}
	return nil
}

// certificate finds one by name and by ID.
func (p *probe) certificate() error {
	found, _, err := p.client.Certificates.ListByName(p.ctx, os.Getenv("PROBE_CERTIFICATE"), &godo.ListOptions{Page: 1, PerPage: 1})
	if err != nil || len(found) != 1 {
		return fmt.Errorf("by name: %+v, %v", found, err)
	}
	certificate, _, err := p.client.Certificates.Get(p.ctx, found[0].ID)
	if err != nil || certificate.Type != "lets_encrypt" {
		return fmt.Errorf("by ID: %+v, %v", certificate, err)
	}
	return nil
}

// firewall creates and changes the public access firewall.
func (p *probe) firewall() error {
	anywhere := []string{"0.0.0.0/0", "::/0"}
	request := &godo.FirewallRequest{
		Name: firewall,
		InboundRules: []godo.InboundRule{
			{Protocol: "tcp", PortRange: "30080", Sources: &godo.Sources{Addresses: anywhere}},
		},
		OutboundRules: []godo.OutboundRule{
			{Protocol: "tcp", PortRange: "all", Destinations: &godo.Destinations{Addresses: anywhere}},
			{Protocol: "icmp", Destinations: &godo.Destinations{Addresses: anywhere}},
		},
		Tags: []string{"workers"},
	}
	made, _, err := p.client.Firewalls.Create(p.ctx, request)
	if err != nil {
		return err
	}
	_, response, err := p.client.Firewalls.Create(p.ctx, request)
	if err := expect(response, err, http.StatusConflict, "duplicate name"); err != nil {
		return err
	}
	listed, err := all(func(options *godo.ListOptions) ([]godo.Firewall, *godo.Response, error) {
		return p.client.Firewalls.List(p.ctx, options)
	})
	if err != nil || len(listed) != 1 || listed[0].OutboundRules[0].PortRange != "0" {
		return fmt.Errorf("listed: %+v, %v", listed, err)
	}
	request.InboundRules = nil
	changed, _, err := p.client.Firewalls.Update(p.ctx, made.ID, request)
	if err != nil || len(changed.InboundRules) != 0 {
		return fmt.Errorf("changed: %+v, %v", changed, err)
	}
	got, _, err := p.client.Firewalls.Get(p.ctx, made.ID)
	if err != nil || got.Name != firewall {
		return fmt.Errorf("got: %+v, %v", got, err)
	}
	return nil
}

// refusals are the answers that the controller tells apart.
func (p *probe) refusals() error {
	bad := p.request()
	bad.DropletIDs = []int{1}
	_, response, err := p.client.LoadBalancers.Create(p.ctx, bad)
	if err := expect(response, err, http.StatusUnprocessableEntity, "droplets 1"); err != nil {
		return err
	}
	if _, _, err := p.client.LoadBalancers.Create(p.ctx, p.request()); err != nil {
		return err
	}
	_, response, err = p.client.LoadBalancers.Create(p.ctx, p.request())
	if err := expect(response, err, http.StatusUnprocessableEntity, "name is not unique"); err != nil {
		return err
	}
	other, err := godo.New(http.DefaultClient, godo.SetBaseURL(os.Getenv("DO_OVERRIDE_URL")))
	if err != nil {
		return err
	}
	_, response, err = other.Account.Get(p.ctx)
	return expect(response, err, http.StatusUnauthorized, "Unable to authenticate you")
}

// expect wants an error of this status with these words in it.
func expect(response *godo.Response, err error, status int, words string) error {
	var refused *godo.ErrorResponse
	var broken *url.Error
	switch {
	case err == nil:
		return fmt.Errorf("expected %d, got no error", status)
	case errors.As(err, &broken):
		return err
	case !errors.As(err, &refused) || response.StatusCode != status:
		return fmt.Errorf("expected %d, got %w", status, err)
	case !strings.Contains(refused.Message, words) || refused.RequestID == "":
		return fmt.Errorf("expected %q and a request ID in %q", words, refused.Message)
	}
	return nil
}
