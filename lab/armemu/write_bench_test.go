// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// pooledBalancer is a load balancer with pools of ten addresses, in an emulator with nine more of them.
type pooledBalancer struct {
	emulator *armemu.Emulator
	path     string
	body     []byte
}

func newPooledBalancer(tb testing.TB, pools int) pooledBalancer {
	tb.Helper()
	const provider = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/"
	emu := armemu.New(armemu.Options{Seed: 1, CallLogCap: 10, Behavior: behavior.Behavior{UpdateAddresses: behavior.Accepted, UpdateAdminStates: behavior.Accepted}})
	if err := emu.Put(provider+"virtualNetworks/v", []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)); err != nil {
		tb.Fatal(err)
	}
	var list []any
	for i := range pools {
		var addresses []any
		for j := range 10 {
			addresses = append(addresses, map[string]any{"name": fmt.Sprint("node-", j), "properties": map[string]any{"ipAddress": fmt.Sprintf("10.0.%d.%d", i%250, j+4), "adminState": "None"}})
		}
		list = append(list, map[string]any{"name": fmt.Sprintf("s-%05d", i), "properties": map[string]any{
			"virtualNetwork": map[string]any{"id": provider + "virtualNetworks/v"}, "loadBalancerBackendAddresses": addresses,
		}})
	}
	body, err := json.Marshal(map[string]any{"location": "eastus", "sku": map[string]any{"name": "Standard"}, "properties": map[string]any{
		"frontendIPConfigurations": []any{map[string]any{"name": "frontend"}}, "backendAddressPools": list,
	}})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 10 {
		if err := emu.Put(fmt.Sprint(provider, "loadBalancers/lb-", i), body); err != nil {
			tb.Fatal(err)
		}
	}
	return pooledBalancer{emu, provider + "loadBalancers/lb-0", body}
}

// write reads the load balancer, changes the address of a pool and reads the result.
func (p pooledBalancer) write(tb testing.TB, n int) {
	tb.Helper()
	p.request(tb, http.MethodGet, nil)
	changed := bytes.Replace(p.body, []byte(`"10.0.0.4"`), fmt.Appendf(nil, `"10.200.%d.%d"`, n%250, 4+n/250%250), 1)
	p.request(tb, http.MethodPut, changed)
	p.request(tb, http.MethodGet, nil)
}

func (p pooledBalancer) request(tb testing.TB, method string, body []byte) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, "http://emulator.test"+p.path+"?api-version=2025-05-01", bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t")
	resp, err := p.emulator.Transport().Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK || n < int64(len(p.body)) {
		tb.Fatalf("%s: %s, %d bytes, %v", method, resp.Status, n, err)
	}
}

// A write of a load balancer and the reads before and after it.
func BenchmarkLoadBalancerWrite(b *testing.B) {
	for _, pools := range []int{10, 100, 200} {
		b.Run(fmt.Sprint(pools), func(b *testing.B) {
			p := newPooledBalancer(b, pools)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				p.write(b, n)
			}
		})
	}
}

// A write of a load balancer, with the reads before and after it, costs the emulator in proportion to the pools.
func TestAWriteOfALoadBalancerCostsItsPools(t *testing.T) {
	costOf := func(pools int) float64 {
		p, n := newPooledBalancer(t, pools), 0
		return testing.AllocsPerRun(5, func() {
			p.write(t, n)
			n++
		})
	}
	const small, large = 50, 200
	few, many := costOf(small), costOf(large)
	t.Logf("%.0f objects for a pool of ten addresses", many/large)
	if many > 1200*large || many > 1.1*few*large/small {
		t.Errorf("%.0f objects for %d pools, %.0f for %d", few, small, many, large)
	}
}
