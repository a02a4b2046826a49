// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// world fakes an Azure with one Basic load balancer and a store, and records the calls. Writes take
// effect unless fails returns an error.
type world struct {
	mu       sync.Mutex
	balancer *lb.LoadBalancer
	ip       lb.PublicIP
	nics     []lb.NetworkInterface
	services []phase.Service
	kept     phase.Journal
	asked    phase.UserRequests
	calls    []string
	fails    func(call string) error
	refuses  func(lb.LoadBalancer) error // error for creating a load balancer
	said     bytes.Buffer
	// manual disables automatic start, broken makes the journal unreadable, and hangs drops the
	// response to the next write of a public IP.
	manual, broken, hangs bool
	// hears accepts start requests; again counts the leads given up.
	hears bool
	again int
	told  []string
	owed  *AddressClaims
	shown []string // status texts, where changed
	kepts []string // saved progress
	// brought is true if users created the public IPs and have not allowed their upgrade.
	brought bool
	// lacks are missing permissions, unknown the error of checking them, and asksRights the number
	// of checks.
	lacks   []string
	unknown error
	// subnet is the machine's subnet, asksSubnets the number of reads; usages are those of the
	// region.
	subnet      lb.Subnet
	asksSubnets int
	usages      []phase.Usage
	asksRights  int
	// showFails is the API server's error for a status update.
	showFails error
}

var (
	place = lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}
	pipID = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: "kubernetes-a1"}
	first = netip.MustParseAddr("198.18.0.1")
)

const subnetID = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"

func newWorld() *world {
	pool := place.String() + "/backendAddressPools/kubernetes"
	return &world{
		hears: true,
		balancer: &lb.LoadBalancer{
			ID: place, Etag: "1", SKU: lb.Basic, Location: "eastus", Frontends: []lb.Frontend{{Name: "a1", PublicIP: pipID.String()}},
			Pools: []lb.Pool{{ID: lb.PoolID{LoadBalancer: place, Name: "kubernetes"}}},
		},
		ip: lb.PublicIP{ID: pipID, Etag: "1", SKU: lb.Basic, Family: lb.IPv4, Address: first, UsedBy: place.String() + "/frontendIPConfigurations/a1"},
		nics: []lb.NetworkInterface{{
			ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypeNetworkInterface, Name: "n1"}, Etag: "1",
			InterfaceConfiguration: lb.InterfaceConfiguration{Name: "n1", SecurityGroup: "/nodes", IPConfigurations: []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true, Subnet: subnetID, Pools: []string{pool}}}},
		}},
		services: []phase.Service{{Name: "ns/web", Owner: "a1", LoadBalancer: place, Addresses: []netip.Addr{first}, Frontends: []lb.Frontend{{Name: "a1", Family: lb.IPv4, PublicIP: pipID.String()}}}},
	}
}

// run runs a migration in virtual time, for at most one hour, and reports whether it ended.
func (w *world) run(t *testing.T) (ended bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		New(w.config()).Run(ctx)
		ended = ctx.Err() == nil
	})
	return ended
}

func (w *world) config() Config {
	return Config{
		Azure: w, Store: w, Services: func() []phase.Service { return w.services }, LoadBalancers: []lb.LoadBalancerID{place},
		Home: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}, PublicIPs: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}, Location: "eastus",
		Options: phase.Options{NodePools: []string{"kubernetes"}, IsManaged: func(lb.PublicIP) bool { return !w.brought }, SecurityGroup: "nodes"}, AutoStart: !w.manual,
		RecordEvent: func(service string, warning bool, reason, text string) {
			w.told = append(w.told, fmt.Sprintf("%s %t %s: %s", service, warning, reason, text))
		},
		UpdateStatus: func(_ context.Context, service, text string) error {
			if text = service + ": " + text; len(w.shown) == 0 || w.shown[len(w.shown)-1] != text {
				w.shown = append(w.shown, text)
			}
			return w.showFails
		},
		SaveProgress: func(_ context.Context, reported phase.Progress) error {
			w.kepts = append(w.kepts, fmt.Sprintf("%s %s %d/%d %s", reported.State, reported.Phase, reported.StepsDone, reported.Steps, strings.Join(reported.Reasons, "; ")))
			return nil
		},
		Claims: w.owed, AcceptRequests: w.hears, EndLead: func() { w.again++ },
		Log: slog.New(slog.NewTextHandler(&w.said, nil)),
	}
}

// stock returns the journal of the current state.
func (w *world) stock() phase.Journal {
	return phase.BuildJournal(phase.Journal{}, phase.Snapshot{LoadBalancers: []lb.LoadBalancer{*w.balancer}, PublicIPs: []lb.PublicIP{w.ip}}, nil, "eastus")
}

func (w *world) call(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	w.calls = append(w.calls, text)
	if w.fails != nil {
		return w.fails(text)
	}
	return nil
}

func refusal(code string) error {
	return &armerror.Fault{Class: armerror.Terminal, Code: code, Err: errors.New(code)}
}

func (w *world) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("list load balancers"); err != nil || w.balancer == nil {
		return nil, err
	}
	return []lb.LoadBalancer{*w.balancer}, nil
}

func (w *world) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("put load balancer %s with %d frontends", b.SKU, len(b.Frontends)); err != nil {
		return b, err
	}
	if w.refuses != nil {
		if err := w.refuses(b); err != nil {
			return b, err
		}
	}
	b.Etag = "2"
	w.balancer, w.ip.UsedBy = &b, b.ID.String()+"/frontendIPConfigurations/a1"
	return b, nil
}

func (w *world) DeleteLoadBalancer(context.Context, lb.LoadBalancer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("delete load balancer"); err != nil {
		return err
	}
	if !w.ip.Static {
		w.ip.Address = netip.Addr{}
	}
	w.balancer, w.ip.UsedBy = nil, ""
	return nil
}

func (w *world) ListPublicIPs(context.Context, string, string) ([]lb.PublicIP, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []lb.PublicIP{w.ip}, w.call("list public IPs")
}

func (w *world) PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	if w.hangs {
		w.hangs = false
		<-ctx.Done()
		return ip, &armerror.Fault{Class: armerror.Terminal, Code: armerror.CodeUnclassified, Err: ctx.Err()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("put public IP %s Static %t", ip.SKU, ip.Static); err != nil {
		return ip, err
	}
	w.ip.SKU, w.ip.Static = ip.SKU, ip.Static
	return w.ip, nil
}

func (w *world) ListInterfaces(context.Context, string, string) ([]lb.NetworkInterface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nics), w.call("list interfaces")
}

func (w *world) PutInterface(_ context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("put interface %s", next.ID.Name); err != nil {
		return next, err
	}
	w.nics[slices.IndexFunc(w.nics, func(i lb.NetworkInterface) bool { return i.ID == next.ID })] = next
	return next, nil
}

func (w *world) ListScaleSets(context.Context, string, string) ([]lb.ScaleSet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return nil, w.call("list scale sets")
}

func (w *world) GetScaleSet(context.Context, lb.ResourceID) (lb.ScaleSet, error) {
	panic("no scale set")
}

func (w *world) PatchModel(context.Context, lb.ScaleSet) (lb.ScaleSet, error) {
	panic("no scale set")
}

func (w *world) ListInstances(context.Context, lb.ResourceID) ([]lb.Instance, error) {
	panic("no scale set")
}

func (w *world) GetInstance(context.Context, lb.ResourceID, string) (lb.Instance, error) {
	panic("no scale set")
}

func (w *world) PutInstance(context.Context, lb.Instance) (lb.Instance, error) {
	panic("no scale set")
}

func (w *world) UpgradeInstances(context.Context, lb.ResourceID, []string) error {
	panic("no scale set")
}

func (w *world) GetSubnet(_ context.Context, network lb.ResourceID, name string) (lb.Subnet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asksSubnets++
	return w.subnet, w.call("list subnet %s of %s", name, network.Name)
}

func (w *world) Usages(_ context.Context, subscription, location string) ([]phase.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.usages, w.call("list usages of %s in %s", subscription, location)
}

func (w *world) Missing(_ context.Context, _ string, actions []string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asksRights++
	return slices.DeleteFunc(slices.Clone(actions), func(a string) bool { return !slices.Contains(w.lacks, a) }), w.unknown
}

func (w *world) Load(context.Context) (phase.Journal, phase.UserRequests, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return phase.Journal{}, w.asked, fmt.Errorf("key x: %w", phase.ErrInvalidJournal)
	}
	return w.kept, w.asked, nil
}

func (w *world) SaveJournal(_ context.Context, j phase.Journal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("keep the journal, members %t, apart %t, done %t", j.Members != nil, j.TrafficStopped, j.Done); err != nil {
		return err
	}
	w.kept = j
	return nil
}

func (w *world) SaveFinalJournal(_ context.Context, kept, next phase.Journal) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.call("keep that there is no way back")
	if err != nil || w.asked.Stop != nil || phase.FormatJournal(w.kept) != phase.FormatJournal(kept) {
		return false, err
	}
	w.kept = next
	return true, nil
}

func (w *world) CompleteUndo(_ context.Context, j phase.Journal) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.call("keep that it is undone")
	if err != nil || w.asked.Stop == nil || !w.asked.Stop.Undo {
		return false, err
	}
	w.kept, w.asked = j, phase.UserRequests{}
	return true, nil
}

func (w *world) ClearStartRequest(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.call("keep that it was heard"); err != nil {
		return err
	}
	w.asked.Run = nil
	return nil
}

// writes returns the calls that change something.
func (w *world) writes() (names []string) {
	for _, c := range w.calls {
		if !strings.HasPrefix(c, "list ") {
			names = append(names, c)
		}
	}
	return names
}
