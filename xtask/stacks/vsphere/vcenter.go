package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	_ "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// Spec is what a new vCenter has.
type Spec struct {
	Datacenters int    `json:"datacenters"`
	Folders     int    `json:"folders"`
	Clusters    int    `json:"clusters"`
	Hosts       int    `json:"hosts"`
	User        string `json:"user"`
	Password    string `json:"password"`
}

// VCenter is one simulated vCenter.
type VCenter struct {
	sync.Mutex
	model  *simulator.Model
	server *simulator.Server
	// Calls the simulator in process.
	client *vim25.Client
	tags   *tags.Manager
	// How often each method was called, by the name of the SOAP method or by HTTP method and path.
	calls map[string]int
	// Sessions that were used, and whether they have been ended.
	sessions  map[string]bool
	user      string
	password  string
	isDown    bool
	isFailing bool
}

const (
	controlAgent  = "vcsim-control"
	soapCookie    = "vmware_soap_session"
	restSession   = "Vmware-Api-Session-Id"
	restLoginPath = "/rest/com/vmware/cis/session"
)

func newVCenter(spec Spec) (*VCenter, error) {
	model := simulator.VPX()
	model.Datacenter, model.Folder = spec.Datacenters, spec.Folders
	model.Cluster, model.ClusterHost = spec.Clusters, spec.Hosts
	model.Host, model.Machine, model.Portgroup = 0, 0, 0
	model.ServiceContent.About.InstanceUuid = uuid.NewString()
	if err := model.Create(); err != nil {
		return nil, err
	}
	own := make([]byte, 16)
	_, _ = rand.Read(own)
	control := url.UserPassword("control", hex.EncodeToString(own))
	v := &VCenter{
		model: model, calls: map[string]int{}, sessions: map[string]bool{},
		user: spec.User, password: spec.Password,
	}
	service := model.Service
	pair, _ := authority()
	service.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	service.RegisterEndpoints = true
	service.Listen = &url.URL{Host: "127.0.0.1:0", User: control}
	model.Map().SessionManager().ValidLogin = func(login *types.Login) bool {
		v.Lock()
		defer v.Unlock()
		password, _ := control.Password()
		return login.UserName == v.user && login.Password == v.password ||
			login.UserName == "control" && login.Password == password
	}
	v.server = service.NewServer()
	v.server.Config.Handler = v.watch(v.server.Config.Handler)
	ctx := context.Background()
	var err error
	if v.client, err = vim25.NewClient(ctx, service); err != nil {
		return nil, err
	}
	// Tags have no calls in process.
	remote, err := govmomi.NewClient(ctx, v.server.URL, true)
	if err != nil {
		return nil, err
	}
	remote.UserAgent = controlAgent
	restClient := rest.NewClient(remote.Client)
	if err := restClient.Login(ctx, control); err != nil {
		return nil, err
	}
	v.tags = tags.NewManager(restClient)
	v.Lock()
	defer v.Unlock()
	v.calls, v.sessions = map[string]int{}, map[string]bool{}
	return v, nil
}

func (v *VCenter) close() {
	v.server.Close()
	v.model.Remove()
}

func thumbprint(sum []byte) string {
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = strings.ToUpper(hex.EncodeToString([]byte{b}))
	}
	return strings.Join(parts, ":")
}

func (v *VCenter) description(id string) map[string]any {
	raw := v.server.Certificate().Raw
	one, two := sha1.Sum(raw), sha256.Sum256(raw)
	_, ca := authority()
	return map[string]any{
		"id": id, "host": v.server.URL.Hostname(), "port": v.server.URL.Port(),
		"sha1": thumbprint(one[:]), "sha256": thumbprint(two[:]),
		"ca": string(ca),
	}
}

var soapMethod = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)

// watch counts calls, forgets ended sessions, and plays faults.
func (v *VCenter) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), controlAgent) {
			next.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		name := r.Method + " " + r.URL.Path
		if found := soapMethod.FindSubmatch(body); found != nil {
			name = string(found[1])
		}
		isDown, isFailing := v.note(name, r)
		switch {
		case isDown:
			panic(http.ErrAbortHandler)
		case isFailing:
			http.Error(w, "by script", http.StatusServiceUnavailable)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (v *VCenter) note(name string, r *http.Request) (bool, bool) {
	v.Lock()
	defer v.Unlock()
	v.calls[name]++
	ended := func(session string) bool {
		isEnded := v.sessions[session]
		v.sessions[session] = isEnded
		return isEnded
	}
	if cookie, err := r.Cookie(soapCookie); err == nil && ended(cookie.Value) {
		r.Header.Del("Cookie")
	}
	if session := r.Header.Get(restSession); session != "" && ended(session) {
		r.Header.Del(restSession)
	}
	return v.isDown, v.isFailing
}

func setFaults(_ context.Context, v *VCenter, r *http.Request) (any, error) {
	var faults struct {
		Down     *bool   `json:"down"`
		Failing  *bool   `json:"failing"`
		Expire   bool    `json:"expire"`
		Password *string `json:"password"`
	}
	if err := json.NewDecoder(r.Body).Decode(&faults); err != nil {
		return nil, err
	}
	v.Lock()
	defer v.Unlock()
	if faults.Down != nil {
		v.isDown = *faults.Down
	}
	if faults.Failing != nil {
		v.isFailing = *faults.Failing
	}
	if faults.Password != nil {
		v.password = *faults.Password
	}
	if faults.Expire {
		for session := range v.sessions {
			v.sessions[session] = true
		}
	}
	return nil, nil
}

func calls(_ context.Context, v *VCenter, _ *http.Request) (any, error) {
	v.Lock()
	defer v.Unlock()
	counted := map[string]int{}
	for name, count := range v.calls {
		counted[name] = count
	}
	return counted, nil
}
