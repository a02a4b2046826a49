// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
)

// keepsPools enables BackendPools and a security group.
func keepsPools(s *stage) {
	s.stop()
	s.backends, s.draining, s.theirs = map[string]*backendPool{}, map[string]bool{}, map[string]bool{}
	s.launch()
}

func guarded(set *loadbalancer.Settings) {
	set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
}

// others changes an address of a pool as another client.
func (s *stage) others(pool, ip string, change func(address map[string]any) (stays bool)) {
	id := network + "/loadBalancers/" + strings.Replace(pool, "/", "/backendAddressPools/", 1)
	raw, ok := s.emu.Get(id)
	if !ok {
		panic("there is no pool " + pool)
	}
	var body struct {
		Properties struct {
			Addresses []map[string]any `json:"loadBalancerBackendAddresses"`
		} `json:"properties"`
	}
	must(json.Unmarshal(raw, &body))
	current := func(a map[string]any) bool { return a["properties"].(map[string]any)["ipAddress"] == ip }
	all := body.Properties.Addresses
	at := slices.IndexFunc(all, current)
	if at < 0 {
		all, at = append(all, map[string]any{"name": "others-" + ip, "properties": map[string]any{"ipAddress": ip}}), len(all)
	}
	if key := strings.ToLower(id) + " " + ip; !change(all[at]) {
		all = slices.Delete(all, at, at+1)
		delete(s.theirs, key)
	} else if !slices.Contains(s.nodes, netip.MustParseAddr(ip)) {
		s.theirs[key] = true
	}
	written, err := json.Marshal(map[string]any{"name": isLastLeaving(id), "properties": map[string]any{
		"virtualNetwork": map[string]any{"id": vnetID}, "loadBalancerBackendAddresses": all,
	}})
	must(err)
	must(s.emu.Put(id, written))
}

func joins(map[string]any) bool  { return true }
func leaves(map[string]any) bool { return false }

// owned checks against Azure's record of writers that every pool has exactly its desired and foreign members,
// and that members set Down by Weir are draining.
func (s *stage) owned() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	foreign := maps.Clone(s.theirs)
	wanted := map[string]bool{} // by pool and address; true means Down
	for name, b := range s.backends {
		if b.deleting {
			return fmt.Errorf("the BackendPool %s does not go", name)
		}
		if _, ok := s.emu.Get(b.id.String()); !ok && containsFold(s.settings.SharedPools(), b.id.Name) {
			continue // its load balancer was recreated without it: no rule needs it
		}
		for _, a := range s.members(b.pool) {
			wanted[strings.ToLower(b.id.String())+" "+a.IP.String()] = a.AdminState == lb.Down
		}
	}
	var errs []error
	for _, e := range s.emu.Entries("") {
		key := strings.ToLower(e.Pool) + " " + e.IP.String()
		if s.unkept(e.Pool) {
			delete(foreign, key)
			continue
		}
		down, own := wanted[key]
		delete(wanted, key)
		delete(foreign, key)
		byWeir, downByWeir := e.AddedBy != "", e.Down && e.DownBy != ""
		switch {
		case byWeir && !own:
			errs = append(errs, fmt.Errorf("%s: Weir put it there, and nobody wants it", short(key)))
		case downByWeir && !down:
			errs = append(errs, fmt.Errorf("%s: Weir set it Down, and its node does not drain", short(key)))
		case own && down && !e.Down:
			errs = append(errs, fmt.Errorf("%s: its node drains, and it is not Down", short(key)))
		}
	}
	for key := range wanted {
		errs = append(errs, fmt.Errorf("%s: it is not there", short(key)))
	}
	for key := range foreign {
		errs = append(errs, fmt.Errorf("%s: another client put it there, and it is gone", short(key)))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// unkept reports whether a node pool has no BackendPool because its Service switched pools early. It keeps its
// initial nodes until a Service needs it.
func (s *stage) unkept(pool string) bool {
	for _, b := range s.backends {
		if strings.EqualFold(b.id.String(), pool) {
			return false
		}
	}
	return containsFold(s.settings.SharedPools(), isLastLeaving(pool))
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return strings.EqualFold(item, name) })
}

// A Service is created while its node drains and the security group is throttled; then the node stays. Its
// member must accept new flows again: a Down by Weir is recorded or absent.
func TestANodeThatStaysBeforeItsServiceIsFinishedIsNotLeftDown(t *testing.T) {
	for about, restarted := range map[string]bool{"one process": false, "two": true} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(guarded)
				defer func() { s.close() }()
				keepsPools(s)
				s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
				must(s.emu.SetFaults(`rules: [{match: {kind: put, path: "**/networkSecurityGroups/*", maxMatches: 1}, action: {status: 429, code: TooManyRequests, headers: {Retry-After: "300"}}}]`))
				s.taint("n1", true)
				s.applyAll(`shop/a: {ports: 80, local: yes}`)
				s.settle(40 * time.Second)
				if output := s.harvest(false); !strings.Contains(output, "PUT networkSecurityGroups/nsg 429") {
					t.Fatalf("the load balancer is to be written, and the security group is not:\n%s", output)
				}
				s.taint("n1", false)
				if restarted {
					s.restart()
				}
				if !s.settle(time.Hour) {
					t.Fatal("it does not come to rest")
				}
				if err := s.owned(); err != nil {
					t.Errorf("%v\n%s", err, s.harvest(false))
				}
			})
		})
	}
}
