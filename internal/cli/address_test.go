// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// fakeAzure has public IPs and load balancers, and the names of those that were deleted and written.
type fakeAzure struct {
	ips       []lb.PublicIP
	balancers []lb.LoadBalancer
	lost      int // this write gets no answer
	deleted   []string
	written   []string
}

func (f *fakeAzure) PutPublicIP(_ context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	f.written = append(f.written, ip.ID.Name)
	return ip, nil
}

func (f *fakeAzure) ListPublicIPs(context.Context, string, string) ([]lb.PublicIP, error) {
	return f.ips, nil
}

func (f *fakeAzure) DeletePublicIP(_ context.Context, ip lb.PublicIP) error {
	f.deleted = append(f.deleted, ip.ID.Name)
	return nil
}

func retained(name, cluster, usedBy string) lb.PublicIP {
	return lb.PublicIP{
		ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: name}, Address: netip.MustParseAddr("198.18.0.1"), UsedBy: usedBy,
		Tags: map[string]string{"k8s-azure-cluster-name": cluster, "k8s-azure-service": "shop/web", "weir-retained-since": "2026-11-28T04:00:00Z"},
	}
}

func TestRelease(t *testing.T) {
	plain := retained("plain", "c", "")
	plain.Tags = nil
	for _, c := range []struct{ names, deleted, err string }{
		{"free", "free", ""},
		{"free used", "", "in use"},
		{"free plain", "", "no public IP plain"},
		{"other", "", "no public IP other"}, // of another cluster
	} {
		azure := &fakeAzure{ips: []lb.PublicIP{retained("free", "c", ""), retained("used", "c", "/x"), retained("other", "d", ""), plain}}
		var out strings.Builder
		err := AddressCommand{Azure: azure, ResourceGroup: "rg", ClusterName: "c", Out: &out}.Release(t.Context(), strings.Fields(c.names))
		if !slices.Equal(azure.deleted, strings.Fields(c.deleted)) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: deleted %v, error %v", c.names, azure.deleted, err)
		}
	}
}

func TestList(t *testing.T) {
	azure := &fakeAzure{ips: []lb.PublicIP{retained("free", "c", ""), retained("other", "d", "")}}
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		if err := (AddressCommand{Azure: azure, ResourceGroup: "rg", ClusterName: "c", Out: &out, JSON: asJSON}).List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "free") || !strings.Contains(text, "shop/web") || strings.Contains(text, "other") {
			t.Errorf("%s", text)
		}
	}
}

func TestClaim(t *testing.T) {
	for _, c := range []struct {
		name, service string
		dryRun, json  bool
		written, out  string
		err           string
	}{
		{name: "OTHER", written: "other", out: "public IP other (198.18.0.1) claimed for Service shop/web of cluster c; it was of Service shop/web of cluster d\n"},
		{name: "other", service: "shop/api", dryRun: true, out: "public IP other (198.18.0.1) would be claimed for Service shop/api of cluster c; it was of Service shop/web of cluster d\n"},
		{name: "own", out: "public IP own (198.18.0.1) is claimed already for Service shop/web of cluster c; it was of Service shop/web of cluster c\n"},
		{name: "other", json: true, written: "other", out: `{"name":"other","resourceGroup":"rg","address":"198.18.0.1","cluster":"c","service":"shop/web","since":"2026-11-28T04:00:00Z","formerCluster":"d","formerService":"shop/web","changed":true,"dryRun":false}` + "\n"},
		{name: "used", err: "is in use"},
		{name: "none", err: "no public IP none"},
	} {
		azure := &fakeAzure{ips: []lb.PublicIP{retained("own", "c", ""), retained("used", "d", "/x"), retained("other", "d", "")}}
		var out strings.Builder
		err := AddressCommand{Azure: azure, ResourceGroup: "rg", ClusterName: "c", Out: &out, DryRun: c.dryRun, JSON: c.json}.Claim(t.Context(), c.name, c.service)
		if strings.Join(azure.written, " ") != c.written || out.String() != c.out || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: written %v, %v\n%s", c, azure.written, err, out.String())
		}
	}
}

// errLost is a request without an answer.
var errLost = errors.New("no answer")

func (f *fakeAzure) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	return slices.Clone(f.balancers), nil
}

func (f *fakeAzure) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	return b, f.write(b.ID.Name, b)
}

func (f *fakeAzure) DeleteLoadBalancer(_ context.Context, b lb.LoadBalancer) error {
	f.deleted = append(f.deleted, b.ID.Name)
	return f.write(b.ID.Name)
}

// write replaces a load balancer, unless the write is lost.
func (f *fakeAzure) write(name string, next ...lb.LoadBalancer) error {
	if f.lost--; f.lost == 0 {
		return errLost
	}
	f.written = append(f.written, name)
	f.balancers = append(slices.DeleteFunc(f.balancers, func(b lb.LoadBalancer) bool { return b.ID.Name == name }), next...)
	return nil
}

// balancer has the frontends and pools of these names; a frontend is named after its address.
func balancer(name, frontends, pools string, retained ...string) lb.LoadBalancer {
	b := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: name}, Etag: "1", SKU: lb.Standard, Tags: map[string]string{}}
	for addr := range strings.FieldsSeq(frontends) {
		b.Frontends = append(b.Frontends, lb.Frontend{Name: addr, PrivateIP: netip.MustParseAddr(addr), Static: true, Subnet: "/vnet/subnets/nodes"})
	}
	for pool := range strings.FieldsSeq(pools) {
		b.Pools = append(b.Pools, lb.Pool{ID: lb.PoolID{Name: pool}})
	}
	for _, addr := range retained {
		b.Tags["weir-retained-"+addr] = "2026-11-28T04:00:00Z shop/web nodes"
	}
	return b
}

func privateCommand(azure AddressClient, out io.Writer) AddressCommand {
	return AddressCommand{Azure: azure, ResourceGroup: "rg", ClusterName: "green", Out: out, Settings: loadbalancer.Settings{
		Settings: service.Settings{VirtualNetwork: "/vnet", Tags: map[string]string{"team": "x"}}, Location: "eastus", Configurations: []service.Configuration{{Name: "green"}},
	}}
}

func spellBalancers(loadBalancers []lb.LoadBalancer) string {
	var texts []string
	for _, b := range loadBalancers {
		text := b.ID.Name + ":"
		for _, f := range b.Frontends {
			text += " " + f.PrivateIP.String()
		}
		for _, r := range b.RetainedAddresses() {
			text += " (" + r.Address.String() + " " + r.Service + ")"
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func TestClaimPrivate(t *testing.T) {
	used := balancer("blue-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4")
	used.Rules = []lb.Rule{{Name: "a1-TCP-80", Frontend: "10.0.0.4"}}
	dual := balancer("blue-internal", "10.0.0.4 fd00::4", "blue", "10.0.0.4", "fd00::4")
	updating := balancer("blue-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4")
	updating.Provisioning = lb.Updating
	for name, c := range map[string]struct {
		balancers       []lb.LoadBalancer
		name, service   string
		deletes, dryRun bool
		end, err        string
	}{
		"beside others": {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4 10.0.0.5", "blue", "10.0.0.4"), balancer("green-internal", "10.0.0.6", "green")},
			end: "blue-internal: 10.0.0.5; green-internal: 10.0.0.6 10.0.0.4 (10.0.0.4 shop/web)"},
		"the load balancer is made": {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4 10.0.0.5", "blue", "10.0.0.4")}, service: "shop/api",
			end: "blue-internal: 10.0.0.5; green-internal: 10.0.0.4 (10.0.0.4 shop/api)"},
		"the last":             {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4", "blue", "10.0.0.4")}, err: "--delete-load-balancer deletes it"},
		"the last, deleted":    {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4", "blue", "10.0.0.4")}, deletes: true, end: "green-internal: 10.0.0.4 (10.0.0.4 shop/web)"},
		"both families":        {balancers: []lb.LoadBalancer{dual}, deletes: true, end: "green-internal: 10.0.0.4 fd00::4 (10.0.0.4 shop/web) (fd00::4 shop/web)"},
		"its own":              {balancers: []lb.LoadBalancer{balancer("green-internal", "10.0.0.4", "green", "10.0.0.4")}, end: "green-internal: 10.0.0.4 (10.0.0.4 shop/web)"},
		"its own, for another": {balancers: []lb.LoadBalancer{balancer("green-internal", "10.0.0.4", "green", "10.0.0.4")}, service: "shop/api", end: "green-internal: 10.0.0.4 (10.0.0.4 shop/api)"},
		"dry run":              {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4")}, dryRun: true, end: "blue-internal: 10.0.0.4 10.0.0.5 (10.0.0.4 shop/web)"},
		"in use":               {balancers: []lb.LoadBalancer{used}, err: "in use by rule a1-TCP-80"},
		"of another namespace": {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4")}, service: "bank/web", err: "only Services of its namespace"},
		"not retained":         {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4", "")}, err: "is not retained"},
		"of both":              {balancers: []lb.LoadBalancer{balancer("blue-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4"), balancer("green-internal", "10.0.0.4", "", "10.0.0.4")}, err: "release one"},
		"it is being written":  {balancers: []lb.LoadBalancer{updating}, err: "repeat the claim later"},
	} {
		for lost := range 4 { // at each write, then repeated
			azure := &fakeAzure{balancers: slices.Clone(c.balancers), lost: lost}
			cmd := privateCommand(azure, io.Discard)
			cmd.DeleteLoadBalancer, cmd.DryRun = c.deletes, c.dryRun
			err := cmd.Claim(t.Context(), "10.0.0.4", c.service)
			if errors.Is(err, errLost) {
				err = cmd.Claim(t.Context(), "10.0.0.4", c.service)
			}
			if c.err != "" {
				c.end = spellBalancers(c.balancers)
			}
			if got := spellBalancers(azure.balancers); got != c.end || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, lost %d: %s: %v", name, lost, got, err)
			}
		}
	}
}

func TestReleasePrivate(t *testing.T) {
	used := balancer("green-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4", "10.0.0.5")
	used.Rules = []lb.Rule{{Name: "a1-TCP-80", Frontend: "10.0.0.4"}}
	dual := balancer("green-internal", "10.0.0.4 fd00::4", "green", "10.0.0.4", "fd00::4")
	for name, c := range map[string]struct {
		balancer   lb.LoadBalancer
		names      string
		deletes    bool
		end, out   string
		err        string
		deletedIPs string
	}{
		"beside others":       {balancer: balancer("green-internal", "10.0.0.4 10.0.0.5", "green", "10.0.0.4"), names: "10.0.0.4", end: "green-internal: 10.0.0.5", out: "private address 10.0.0.4 released\n"},
		"with a public IP":    {balancer: balancer("green-internal", "10.0.0.4 10.0.0.5", "green", "10.0.0.4"), names: "10.0.0.4 ip", end: "green-internal: 10.0.0.5", out: "public IP ip (198.18.0.1) released\nprivate address 10.0.0.4 released\n", deletedIPs: "ip"},
		"the last":            {balancer: balancer("green-internal", "10.0.0.4", "green", "10.0.0.4"), names: "10.0.0.4", end: "green-internal: 10.0.0.4", out: "private address 10.0.0.4 is no longer retained; Azure requires its frontend while load balancer green-internal has backend pool green: Weir deletes it with these\n"},
		"both, deleted":       {balancer: dual, names: "10.0.0.4 fd00::4", deletes: true, out: "private address fd00::4 released\nprivate address 10.0.0.4 released\n", deletedIPs: "green-internal"},
		"one is in use":       {balancer: used, names: "10.0.0.5 10.0.0.4", err: "in use by rule a1-TCP-80 of load balancer green-internal: delete its Service first; nothing was released"},
		"of another cluster":  {balancer: balancer("blue-internal", "10.0.0.4 10.0.0.5", "", "10.0.0.4"), names: "10.0.0.4", err: "no private address 10.0.0.4 is retained for cluster green"},
		"an address not kept": {balancer: balancer("green-internal", "10.0.0.4 10.0.0.5", "green"), names: "10.0.0.4", err: "no private address"},
	} {
		var out strings.Builder
		azure := &fakeAzure{balancers: []lb.LoadBalancer{c.balancer}, ips: []lb.PublicIP{retained("ip", "green", "")}}
		cmd := privateCommand(azure, &out)
		cmd.DeleteLoadBalancer = c.deletes
		err := cmd.Release(t.Context(), strings.Fields(c.names))
		if c.err != "" {
			c.end = spellBalancers([]lb.LoadBalancer{c.balancer})
		}
		if got := spellBalancers(azure.balancers); got != c.end || out.String() != c.out || strings.Join(azure.deleted, " ") != c.deletedIPs || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, deleted %v: %v\n%s", name, got, azure.deleted, err, out.String())
		}
	}
}

func TestListPrivate(t *testing.T) {
	own := balancer("green-internal", "10.0.0.4 10.0.0.5", "green", "10.0.0.4", "10.0.0.5")
	own.Rules = []lb.Rule{{Name: "a1-TCP-80", Frontend: "10.0.0.4"}}
	var out strings.Builder
	if err := privateCommand(&fakeAzure{balancers: []lb.LoadBalancer{own, balancer("blue-internal", "10.0.0.6", "", "10.0.0.6")}}, &out).List(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "NAME       ADDRESS    SERVICE    SINCE                  IN USE\n10.0.0.4   10.0.0.4   shop/web   2026-11-28T04:00:00Z   true\n10.0.0.5   10.0.0.5   shop/web   2026-11-28T04:00:00Z   false\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
