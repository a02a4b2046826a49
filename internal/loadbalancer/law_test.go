// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

// edit is one change of the cluster; without a Service it is a restart.
type edit struct {
	name  string
	uid   string
	spec  map[string]string // nil deletes it
	waits time.Duration
}

// Pools and policies of the generated Services.
var (
	lawNames = []string{"shop/a", "shop/b", "shop/c", "shop/d"}
	lawRules = []map[string]string{
		{}, {"azure-load-balancer-tcp-idle-timeout": "15"}, {"azure-disable-load-balancer-floating-ip": "true"},
		{"client-ip": "yes"}, {"azure-load-balancer-health-probe-protocol": "http"}, {"local": "yes"},
	}
)

// anchors are permanent Services: Azure rejects a load balancer with only IPv6 frontends.
var anchors = []edit{
	{name: "shop/e", uid: "401", spec: map[string]string{"ports": "9000"}},
	{name: "shop/f", uid: "501", spec: map[string]string{"ports": "9001", "azure-load-balancer-internal": "true"}},
}

// drawEdits generates a history. The last two Services share an address, so they use distinct ports and never
// request another one: the frontend's creator could not leave.
func drawEdits(t *rapid.T) []edit {
	var edits []edit
	families := []string{"IPv4", "IPv4 IPv6", "IPv6 IPv4"}
	if rapid.Bool().Draw(t, "anchored") {
		edits, families = slices.Clone(anchors), append(families, "IPv6")
	}
	lives := map[string]int{}
	present := map[string]bool{}
	for range rapid.IntRange(1, 8).Draw(t, "edits") {
		e := edit{waits: rapid.SampledFrom([]time.Duration{0, time.Second, 15 * time.Second, 5 * time.Minute}).Draw(t, "waits")}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0:
		case kind < 3:
			e.name = rapid.SampledFrom(lawNames).Draw(t, "deleted")
			present[e.name] = false
		default:
			e.name = rapid.SampledFrom(lawNames).Draw(t, "applied")
			e.spec = drawSpec(t, e.name, families)
			if !present[e.name] {
				present[e.name] = true
				lives[e.name]++
			}
		}
		if e.name != "" {
			e.uid = fmt.Sprintf("%d%d%d", slices.Index(lawNames, e.name), lives[e.name]/10, lives[e.name]%10)
		}
		edits = append(edits, e)
	}
	return edits
}

func drawSpec(t *rapid.T, name string, families []string) map[string]string {
	at := slices.Index(lawNames, name)
	port := 80
	if at > 1 {
		port += 10 * at
	}
	spec := maps.Clone(rapid.SampledFrom(lawRules).Draw(t, "rules"))
	if spec["azure-disable-load-balancer-floating-ip"] != "" {
		port += at // two of them cannot have the same port in the shared node pool
	}
	spec["ports"] = fmt.Sprint(port)
	if rapid.Bool().Draw(t, "second port") {
		spec["ports"] += fmt.Sprintf(" %d/UDP", port+1)
	}
	private := rapid.Bool().Draw(t, "internal")
	if private {
		spec["azure-load-balancer-internal"] = "true"
	}
	switch {
	case at > 1 && private:
		spec["azure-load-balancer-ipv4"] = "10.0.0.9"
	case at > 1:
		spec["azure-pip-name"] = "mine"
	default:
		spec["families"] = rapid.SampledFrom(families).Draw(t, "families")
		spec["azure-dns-label-name"] = rapid.SampledFrom([]string{"", "one" + fmt.Sprint(at), "two" + fmt.Sprint(at)}).Draw(t, "label")
		if group := rapid.SampledFrom([]string{"", "", "net"}).Draw(t, "group"); group != "" {
			spec["azure-load-balancer-resource-group"] = group
		}
	}
	return spec
}

// Whatever the path, Azure ends in the same state: load balancers, Service rules, probes and pools, public IPs
// with labels and tags. Not compared: addresses; frontend names, which the first Service at a shared address
// determines; shared pools without rules, which stay with their load balancer.
func TestLawThePathDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		edits := drawEdits(rt)
		last := map[string]edit{}
		for _, e := range edits {
			if e.name != "" {
				last[e.name] = e
			}
		}
		var end []edit
		for _, name := range append(slices.Clone(lawNames), "shop/e", "shop/f") {
			if e, ok := last[name]; ok && e.spec != nil {
				end = append(end, edit{name: name, uid: e.uid, spec: e.spec})
			}
		}
		walked, err := walk(t, edits)
		if err != nil {
			rt.Fatal(err)
		}
		fresh, err := walk(t, end)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(fresh, "\n"), strings.Split(walked, "\n")); diff != "" {
			rt.Fatalf("-fresh +walked\n%s", diff)
		}
	})
}

// walk applies edits and returns the final state of Azure. A resync and a restart after that must write
// nothing.
func walk(t *testing.T, edits []edit) (end string, err error) {
	synctest.Test(t, func(*testing.T) {
		s := newStage()
		defer s.close()
		s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		uids := map[string]string{}
		for _, e := range edits {
			switch {
			case e.name == "":
				s.restart()
			case e.spec == nil:
				s.remove(e.name)
			default:
				if uid, ok := uids[e.name]; ok && uid != e.uid {
					s.settle(2 * time.Hour) // Kubernetes has one Service per name
				}
				uids[e.name] = e.uid
				spec := specOf(e.spec)
				spec.UID = e.uid
				s.apply(e.name, spec, nil)
			}
			s.settle(e.waits)
		}
		if !s.settle(2 * time.Hour) {
			err = fmt.Errorf("it does not come to rest:\n%s", s.harvest(false))
			return
		}
		if err = s.check(); err != nil {
			return
		}
		end = s.cloud().essence(s.settings.Settings)
		s.emu.ClearCalls()
		s.look()
		s.settle(time.Hour)
		s.restart()
		s.settle(time.Hour)
		if n := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))); n > 0 {
			err = fmt.Errorf("asked again, it writes %d times:\n%s", n, s.harvest(false))
		}
	})
	return end, err
}

// essence formats the compared state.
func (c cloud) essence(set service.Settings) string {
	var lines []string
	for _, b := range c.balancers {
		places, used := map[string]string{}, map[string]bool{}
		for i, f := range b.Properties.Frontends {
			place := f.Name
			switch p := f.Properties; {
			case p.PublicIP != nil:
				place = short(p.PublicIP.ID)
			case p.Method == "Static":
				place = p.IP
			}
			places[f.Name] = place
			b.Properties.Frontends[i].Name = place
			lines = append(lines, b.Name+" frontend "+place)
		}
		for _, r := range b.Properties.Rules {
			used[isLastLeaving(r.Properties.Pool.ID)] = true
			r.Properties.Frontend.ID = "/" + places[isLastLeaving(r.Properties.Frontend.ID)]
			lines = append(lines, b.Name+r.spell()+" at "+r.Properties.Frontend.ID)
		}
		for _, p := range b.Properties.Probes {
			lines = append(lines, b.Name+p.spell())
		}
		for _, p := range b.Properties.Pools {
			if used[p.Name] || !slices.Contains(set.SharedPools(), p.Name) {
				lines = append(lines, b.Name+p.spell())
			}
		}
	}
	for _, ip := range c.ips {
		ip.Properties.IP = ""
		lines = append(lines, ip.spell())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
