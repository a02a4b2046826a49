// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// witness records foreign parts in Azure and checks that they stay: parts of the cluster's load balancers with
// all fields, and that other load balancers are not even read.
type witness struct {
	parts     map[string]any // by "load balancer id kind name"
	balancers map[string]any // by ID
	ips       map[string]string
	seen      uint64
}

// kinds are the part lists of a load balancer.
var kinds = []string{
	"frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules",
	"outboundRules", "inboundNatRules", "inboundNatPools",
}

// remember records what exists as foreign, except parts of Services.
func (s *stage) remember() {
	w := &s.witness
	w.parts, w.balancers, w.ips = map[string]any{}, map[string]any{}, map[string]string{}
	for id, body := range s.bodies("/loadBalancers/") {
		if !s.clusters(id) {
			w.balancers[id] = body
			continue
		}
		for key, part := range partsOf(id, body) {
			if !s.made(key) {
				w.parts[key] = part
			}
		}
	}
	for _, ip := range s.cloud().ips {
		if !strings.HasPrefix(ip.Name, clusterName+"-a") {
			w.ips[ip.ID] = ip.Properties.IP
		}
	}
}

// check returns an error if foreign parts changed.
func (s *stage) check() error {
	w, current := &s.witness, map[string]any{}
	errs := []error{patient.CheckRequests(s.emu)}
	bodies := s.bodies("/loadBalancers/")
	for id, body := range bodies {
		for key, part := range partsOf(id, body) {
			current[key] = part
		}
	}
	for key, part := range w.parts {
		if diff := cmp.Diff(part, current[key]); diff != "" {
			errs = append(errs, fmt.Errorf("%s was changed:\n%s", key, diff))
		}
	}
	for id, body := range w.balancers {
		if diff := cmp.Diff(body, bodies[id]); diff != "" {
			errs = append(errs, fmt.Errorf("%s was changed:\n%s", id, diff))
		}
	}
	ips := map[string]string{}
	for _, ip := range s.cloud().ips {
		ips[ip.ID] = ip.Properties.IP
	}
	for id, addr := range w.ips {
		if ips[id] != addr {
			errs = append(errs, fmt.Errorf("%s had %s and has %q", id, addr, ips[id]))
		}
	}
	for _, c := range s.emu.Calls(func(c armemu.Call) bool { return c.Seq > w.seen }) {
		w.seen = c.Seq
		if w.balancers[c.Resource] != nil {
			errs = append(errs, fmt.Errorf("%s %s: that is another owner's", c.Method, c.Resource))
		}
	}
	return errors.Join(errs...)
}

// clusters reports whether a load balancer is the cluster's.
func (s *stage) clusters(id string) bool {
	return slices.ContainsFunc(s.settings.Configurations, func(c service.Configuration) bool {
		return strings.EqualFold(isLastLeaving(id), c.Name) || strings.EqualFold(isLastLeaving(id), c.Name+"-internal")
	})
}

// made reports whether Weir made a part.
func (s *stage) made(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := key[strings.LastIndexByte(key, ' ')+1:]
	if slices.Contains(append(s.settings.SharedPools(), service.SharedProbeName), name) {
		return true
	}
	for _, r := range s.services {
		if strings.HasPrefix(name, r.OwnerName()) || slices.Contains(r.DedicatedPools(), name) {
			return true
		}
	}
	for uid := 1; uid <= s.uids; uid++ { // a deleted one may have left its frontend
		if owner := fmt.Sprintf("a%03x", uid); strings.HasPrefix(name, owner) && strings.Contains(key, " frontendIPConfigurations ") {
			return true
		}
	}
	return strings.Contains(s.left.spell(), "/backendaddresspools/"+name+" of ")
}

func (s *stage) bodies(of string) map[string]map[string]any {
	var resources []struct {
		ID   string         `json:"id"`
		Body map[string]any `json:"body"`
	}
	must(json.Unmarshal(s.emu.Snapshot(), &resources))
	found := map[string]map[string]any{}
	for _, r := range resources {
		if strings.Contains(r.ID, of) {
			found[r.ID] = r.Body
		}
	}
	return found
}

// partsOf returns the parts of a load balancer without etags, states and references.
func partsOf(id string, body map[string]any) map[string]any {
	parts := map[string]any{}
	var copied map[string]any
	raw, err := json.Marshal(body)
	must(err)
	must(json.Unmarshal(raw, &copied))
	props, _ := copied["properties"].(map[string]any)
	for _, kind := range kinds {
		list, _ := props[kind].([]any)
		for _, item := range list {
			part, _ := item.(map[string]any)
			withoutEtags(part)
			if inner, ok := part["properties"].(map[string]any); ok {
				for _, derived := range []string{"provisioningState", "loadBalancingRules", "outboundRules", "outboundRule", "inboundNatRules", "inboundNatPools"} {
					delete(inner, derived)
				}
			}
			parts[fmt.Sprintf("%s %s %v", id, kind, part["name"])] = part
		}
	}
	return parts
}

func withoutEtags(part any) {
	switch part := part.(type) {
	case map[string]any:
		delete(part, "etag")
		for _, inner := range part {
			withoutEtags(inner)
		}
	case []any:
		for _, inner := range part {
			withoutEtags(inner)
		}
	}
}
