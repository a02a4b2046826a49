// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// answering answers every request alike, without keeping any.
type answering struct{ reply reply }

func (a answering) Do(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range a.reply.header {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: a.reply.status, Header: header, Body: io.NopCloser(strings.NewReader(a.reply.body)), Request: req}, nil
}

// writeCost is a load balancer with this many pools of ten addresses, rules and probes, and a client that
// reads and writes it without latency.
type writeCost struct {
	client *Client
	id     lb.LoadBalancerID
	parts  int
}

func newWriteCost(tb testing.TB, parts int) writeCost {
	tb.Helper()
	id := poolID("s1", "kubernetes", "").LoadBalancer
	shown := reply{status: http.StatusOK, body: fullBalancer(id, parts), header: map[string]string{"Azure-AsyncOperation": operation}}
	endpoint, err := NewEndpoint("", EndpointOverrides{})
	if err != nil {
		tb.Fatal(err)
	}
	client, err := New(Options{
		Endpoint: endpoint, Credential: tokenOf(testToken), UserAgent: "weir/test", VirtualNetworkID: vnet,
		Transport: answering{shown},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return writeCost{client, id, parts}
}

// write changes a pool, a rule and a probe.
func (w writeCost) write(ctx context.Context) error {
	b, err := w.client.GetLoadBalancer(ctx, w.id)
	if err != nil {
		return err
	}
	b.Pools[w.parts/2].Addresses[0] = address("new", "10.9.9.9")
	b.Rules[w.parts/2].IdleMinutes, b.Probes[w.parts/2].Port = 9, 9
	b, err = w.client.PutLoadBalancer(ctx, b)
	if err == nil && (len(b.Pools) != w.parts || len(b.Rules) != w.parts) {
		err = fmt.Errorf("%d pools and %d rules of %d", len(b.Pools), len(b.Rules), w.parts)
	}
	return err
}

// fullBalancer has members in the order of Azure, and the properties that only Azure sets.
func fullBalancer(id lb.LoadBalancerID, parts int) string {
	const etag = `"etag":"W/\"4f1b2c3d-aaaa-bbbb-cccc-0123456789ab\""`
	part := func(kind, name, properties string) string {
		return fmt.Sprintf(`{"name":"%s","id":"%s/%s/%s",%s,"properties":{"provisioningState":"Succeeded",%s},"type":"Microsoft.Network/loadBalancers/%s"}`,
			name, id, kind, name, etag, properties, kind)
	}
	var pools, rules, probes []string
	for i := range parts {
		name := fmt.Sprintf("a0123456789abcdef-TCP-%d", i)
		var addresses []string
		for j := range 10 {
			addresses = append(addresses, part("backendAddressPools/loadBalancerBackendAddresses", fmt.Sprint("node-", j), fmt.Sprintf(`"ipAddress":"10.0.%d.%d","adminState":"None"`, i%250, j)))
		}
		pools = append(pools, part("backendAddressPools", name, fmt.Sprintf(`"virtualNetwork":{"id":"%s"},"loadBalancerBackendAddresses":[%s],"loadBalancingRules":[{"id":"%s/loadBalancingRules/%s"}]`, vnet, strings.Join(addresses, ","), id, name)))
		rules = append(rules, part("loadBalancingRules", name, fmt.Sprintf(`"frontendIPConfiguration":{"id":"%s/frontendIPConfigurations/a"},"frontendPort":80,"backendPort":80,"idleTimeoutInMinutes":4,"protocol":"Tcp","enableTcpReset":true,"backendAddressPool":{"id":"%s/backendAddressPools/%s"},"probe":{"id":"%s/probes/%s"}`, id, id, name, id, name)))
		probes = append(probes, part("probes", name, `"protocol":"Tcp","port":30000,"intervalInSeconds":5,"numberOfProbes":2,"probeThreshold":2`))
	}
	return fmt.Sprintf(`{"name":"%s","id":"%s",%s,"location":"eastus","sku":{"name":"Standard","tier":"Regional"},"properties":{"provisioningState":"Succeeded","frontendIPConfigurations":[{"name":"a"}],"backendAddressPools":[%s],"loadBalancingRules":[%s],"probes":[%s]}}`,
		id.Name, id, etag, strings.Join(pools, ","), strings.Join(rules, ","), strings.Join(probes, ","))
}

// A read and a write of a load balancer that change one part of each kind.
func BenchmarkLoadBalancerWrite(b *testing.B) {
	for _, parts := range []int{10, 100, 200} {
		b.Run(fmt.Sprint(parts), func(b *testing.B) {
			w := newWriteCost(b, parts)
			b.ReportAllocs()
			for b.Loop() {
				if err := w.write(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
