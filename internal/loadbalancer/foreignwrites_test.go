// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/lab/armemu/schema"
	"weir.dev/weir/test/worlds"
)

// put creates a foreign resource from YAML; ~ is the group's network prefix.
func (s *stage) put(name, body string) {
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(body, "~", network)))
	must(err)
	id := network + "/" + name
	if strings.HasPrefix(name, "/") {
		id = "/subscriptions/" + subscription + "/resourceGroups" + name
	}
	if strings.HasPrefix(name, "loadBalancers/") {
		s.write(id, raw)
	} else {
		must(s.emu.Put(id, raw))
	}
	s.remember()
}

// machine adds the network interface of a virtual machine to pools.
func (s *stage) machine(d *datadriven.TestData) {
	name := d.CmdArgs[0].Key
	var pools []string
	for _, a := range d.CmdArgs[1:] {
		pools = append(pools, `{"id":"`+network+"/loadBalancers/"+strings.Replace(a.Key, "/", "/backendAddressPools/", 1)+`"}`)
	}
	must(s.emu.Put(network+"/networkInterfaces/"+name, fmt.Appendf(nil, `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{
		"subnet":{"id":"%s/subnets/nodes"},"loadBalancerBackendAddressPools":[%s]}}]}}`, vnetID, strings.Join(pools, ","))))
	must(s.emu.Put(strings.Replace(network, "Network", "Compute", 1)+"/virtualMachines/"+name, fmt.Appendf(nil,
		`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"%s/networkInterfaces/%s"}]}}}`, network, name)))
	s.remember()
}

// write writes a resource as another client: omitted properties are added, and pools end up with the given
// members.
func (s *stage) write(id string, raw []byte) {
	got := s.emu.Behavior()
	must(s.emu.SetBehavior(worlds.BatchedWrites()))
	defer func() { must(s.emu.SetBehavior(got)) }()
	must(s.emu.SetLatencyScale(0))
	var body map[string]any
	must(json.Unmarshal(raw, &body))
	_, path, _ := strings.Cut(id, "/providers/")
	segments := strings.Split(path, "/")
	kind := segments[0]
	for i := 1; i < len(segments); i += 2 {
		kind += "/" + segments[i]
	}
	raw, err := json.Marshal(schema.Writable(kind, body))
	must(err)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://127.0.0.1:8080"+id+"?api-version=2025-05-01", bytes.NewReader(raw))
	must(err)
	req.Header.Set("Authorization", "Bearer somebody")
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.emu.Transport().Do(req)
	must(err)
	if resp.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(resp.Body)
		panic(string(text))
	}
	must(resp.Body.Close())
	must(s.emu.SetLatencyScale(1))
	for _, c := range s.emu.Calls() {
		s.logged, s.witness.seen = c.Seq, c.Seq
	}
}

// add adds foreign parts to a load balancer, in YAML lists by property name.
func (s *stage) add(balancer, parts string) {
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(parts, "~", network)))
	must(err)
	var more map[string][]any
	must(json.Unmarshal(raw, &more))
	s.editBalancer(balancer, func(properties map[string]any) {
		for list, items := range more {
			got, _ := properties[list].([]any)
			properties[list] = append(got, items...)
		}
	})
}

// take removes a part of a load balancer as another client.
func (s *stage) take(balancer, list, name string) {
	s.editBalancer(balancer, func(properties map[string]any) {
		got, _ := properties[list].([]any)
		properties[list] = slices.DeleteFunc(got, func(item any) bool { return item.(map[string]any)["name"] == name })
	})
}

func (s *stage) editBalancer(balancer string, change func(properties map[string]any)) {
	id := network + "/loadBalancers/" + balancer
	raw, ok := s.emu.Get(id)
	if !ok {
		panic("there is no load balancer " + balancer)
	}
	var body map[string]any
	must(json.Unmarshal(raw, &body))
	properties := body["properties"].(map[string]any)
	frontends, _ := properties["frontendIPConfigurations"].([]any)
	for _, f := range frontends {
		delete(f.(map[string]any)["properties"].(map[string]any), "inboundNatRules") // read-only references
	}
	pools, _ := properties["backendAddressPools"].([]any)
	for _, p := range pools { // read-only member properties
		pool := p.(map[string]any)["properties"].(map[string]any)
		members, _ := pool["loadBalancerBackendAddresses"].([]any)
		if pool["backendIPConfigurations"] != nil { // the interfaces determine these members
			delete(pool, "loadBalancerBackendAddresses")
		}
		for _, m := range members {
			got := m.(map[string]any)
			delete(got["properties"].(map[string]any), "provisioningState")
			for _, key := range []string{"id", "etag", "type"} {
				delete(got, key)
			}
		}
	}
	change(properties)
	raw, err := json.Marshal(body)
	must(err)
	s.write(id, raw)
	s.remember()
}

// drop deletes a resource as another client, with everything that refers to a load balancer.
func (s *stage) drop(name string) {
	var messages []map[string]json.RawMessage
	must(json.Unmarshal(s.emu.Snapshot(), &messages))
	messages = slices.DeleteFunc(messages, func(r map[string]json.RawMessage) bool {
		return strings.HasSuffix(strings.ToLower(string(r["id"])), strings.ToLower("/"+name+`"`))
	})
	raw, err := json.Marshal(messages)
	must(err)
	must(s.emu.Restore(raw))
	s.remember()
}
