// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitPools(t *testing.T) {
	for _, tt := range []struct {
		name, text, rest string
		pools            []string
	}{
		{
			"a load balancer", `{"name":"a","properties":{"probes":[],"backendAddressPools":[{"name":"p"}, {"name":"]}\""}]}}`,
			`{"name":"a","properties":{"probes":[],"backendAddressPools":[]}}`, []string{`{"name":"p"}`, `{"name":"]}\""}`},
		},
		{"null in place of a pool", `{"properties":{"backendAddressPools": [ null ] , "x":1}}`, `{"properties":{"backendAddressPools": [] , "x":1}}`, []string{"null"}},
		{"pools that are named twice", `{"properties":{"backendAddressPools":[1],"backendAddressPools":[2]}}`, `{"properties":{"backendAddressPools":[],"backendAddressPools":[]}}`, []string{"2"}},
		{"no pools", `{"properties":{"backendAddressPools":null,"pools":[1]}}`, "", nil},
		{"pools of something else", `{"backendAddressPools":[],"x":{"properties":{"backendAddressPools":[{}]}}}`, "", nil},
		{"half a text", `{"properties":{"backendAddressPools":[{}]}`, "", nil},
		{"more than a text", `{"properties":{"backendAddressPools":[{}]}} {}`, "", nil},
		{"not JSON", `no such resource`, "", nil},
	} {
		rest, pools, err := splitPools([]byte(tt.text))
		if tt.rest == "" {
			tt.rest = tt.text
		}
		var got []string
		for _, p := range pools {
			got = append(got, string(p))
		}
		if diff := cmp.Diff(tt.pools, got); diff != "" || string(rest) != tt.rest || err != nil {
			t.Errorf("%s: %s, %v, pools (-want +got):\n%s", tt.name, rest, err, diff)
		}
	}
}

// Misplaced pools are rejected, not treated as no pools: a write would delete them.
func TestPoolsElsewhereAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"properties":{"BackendAddressPools":[{"name":"p"}]}}`, `{"Properties":{"backendAddressPools":[{"name":"p"}]}}`,
		`{"properties":{"backendAddressPools":{"name":"p"}}}`, `{"properties":{"backendAddressPools":[{"name":1}]}}`, `{"properties":{"backendAddressPools":["p"]}}`,
		`{"properties":{"\u0062ackendAddressPools":[{"name":"p"}]}}`,
	} {
		if b, err := DecodeLoadBalancer(webPool.LoadBalancer, newDocument(text)); err == nil {
			t.Errorf("%s: %+v", text, b)
		}
	}
}

// The split text is a valid load balancer with the same pools if and only if the input is.
func FuzzSplitPools(f *testing.F) {
	f.Add([]byte(`{"name":"a","properties":{"probes":[],"backendAddressPools":[{"name":"p","properties":{"drainPeriodInSeconds":1}},null]}}`))
	f.Add([]byte(`{"properties":{"backendAddressPools":[],"backendAddressPools":[{}]},"properties":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var whole struct {
			Properties struct {
				Pools []*armPool `json:"backendAddressPools"`
			} `json:"properties"`
		}
		valid := json.Unmarshal(text, &whole) == nil
		b, err := DecodeLoadBalancer(webPool.LoadBalancer, Document{Text: text})
		if err == nil && !valid {
			t.Errorf("taken for a load balancer")
		}
		pools := 0
		for _, p := range whole.Properties.Pools {
			if p != nil {
				pools++
			}
		}
		if err == nil && len(b.Pools) != pools && !bytes.Contains(bytes.ToLower(text), []byte(`properties`)) {
			t.Errorf("%d pools, the whole has %d", len(b.Pools), pools)
		}
	})
}

// largeText is a load balancer with 1,000 rules and probes, 200 frontends and 200 pools of ten
// addresses.
func largeText() []byte {
	id := webPool.LoadBalancer.String()
	var rules, probes, frontends, pools []string
	part := func(kind, name, properties string) string {
		return fmt.Sprintf(`{"name":"%s","id":"%s/%s/%s","etag":"W/\"4f1b2c3d-aaaa-bbbb-cccc-0123456789ab\"","type":"Microsoft.Network/loadBalancers/%s","properties":{"provisioningState":"Succeeded",%s}}`,
			name, id, kind, name, kind, properties)
	}
	for i := range 1000 {
		name := fmt.Sprintf("a0123456789abcdef-TCP-%d", i)
		rules = append(rules, part("loadBalancingRules", name, fmt.Sprintf(`"frontendIPConfiguration":{"id":"%s/frontendIPConfigurations/a%d"},"frontendPort":80,"backendPort":80,"enableFloatingIP":true,"idleTimeoutInMinutes":4,"protocol":"Tcp","enableDestinationServiceEndpoint":false,"enableTcpReset":true,"allowBackendPortConflict":false,"loadDistribution":"Default","disableOutboundSnat":true,"backendAddressPool":{"id":"%s/backendAddressPools/kubernetes"},"backendAddressPools":[{"id":"%s/backendAddressPools/kubernetes"}],"probe":{"id":"%s/probes/%s"}`,
			id, i%200, id, id, id, name)))
		probes = append(probes, part("probes", name, fmt.Sprintf(`"protocol":"Tcp","port":30000,"intervalInSeconds":5,"numberOfProbes":2,"probeThreshold":2,"noHealthyBackendsBehavior":"AllProbedDown","loadBalancingRules":[{"id":"%s/loadBalancingRules/%s"}]`, id, name)))
	}
	for i := range 200 {
		var refs, addresses []string
		for j := range 5 {
			refs = append(refs, fmt.Sprintf(`{"id":"%s/loadBalancingRules/a0123456789abcdef-TCP-%d"}`, id, i+200*j))
		}
		for j := range 10 {
			addresses = append(addresses, fmt.Sprintf(`{"name":"aks-nodepool-vmss%06d","properties":{"ipAddress":"10.0.%d.%d","adminState":"None"}}`, j, i, j))
		}
		used := `"loadBalancingRules":[` + strings.Join(refs, ",") + `]`
		frontends = append(frontends, part("frontendIPConfigurations", fmt.Sprint("a", i), fmt.Sprintf(`"privateIPAllocationMethod":"Dynamic","publicIPAddress":{"id":"/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/kubernetes-a%d"},%s`, i, used)))
		pools = append(pools, part("backendAddressPools", fmt.Sprint("pool-", i), fmt.Sprintf(`"virtualNetwork":{"id":"%s"},"loadBalancerBackendAddresses":[%s],%s`, vnet, strings.Join(addresses, ","), used)))
	}
	return fmt.Appendf(nil, `{"id":"%s","name":"kubernetes","etag":"W/\"4f1b2c3d-aaaa-bbbb-cccc-0123456789ab\"","location":"eastus","sku":{"name":"Standard","tier":"Regional"},"properties":{"provisioningState":"Succeeded","frontendIPConfigurations":[%s],"backendAddressPools":[%s],"loadBalancingRules":[%s],"probes":[%s],"inboundNatRules":[],"outboundRules":[],"inboundNatPools":[]}}`,
		id, strings.Join(frontends, ","), strings.Join(pools, ","), strings.Join(rules, ","), strings.Join(probes, ","))
}

// A decoded load balancer takes little more memory than its text.
func TestALoadBalancerInMemory(t *testing.T) {
	shown := newDocument(string(largeText()))
	const copies = 10
	kept := make([]any, copies)
	before := inUse()
	for i := range kept {
		b, err := DecodeLoadBalancer(webPool.LoadBalancer, shown)
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = b
	}
	size := int(inUse()-before) / copies //nolint:gosec // some MiB
	runtime.KeepAlive(kept)
	if size > 2*len(shown.Text) {
		t.Errorf("%d bytes for %d of text", size, len(shown.Text))
	}
	t.Logf("%d bytes for %d of text", size, len(shown.Text))
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkLoadBalancer(b *testing.B) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, largeText(), "", "  "); err != nil {
		b.Fatal(err)
	}
	shown := newDocument(pretty.String())
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(shown.Text)))
		for b.Loop() {
			if _, err := DecodeLoadBalancer(webPool.LoadBalancer, shown); err != nil {
				b.Fatal(err)
			}
		}
	})
	balancer, err := DecodeLoadBalancer(webPool.LoadBalancer, shown)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			body, err := EncodeLoadBalancer(balancer, vnet)
			if err == nil {
				_, err = json.Marshal(body)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
