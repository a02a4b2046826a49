// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// decodeApart decodes as the adapter does.
func decodeApart(text []byte) (*armnetwork.LoadBalancer, error) {
	rest, pools := SplitPools(text)
	b := &armnetwork.LoadBalancer{}
	err := json.Unmarshal(rest, b)
	pools.Rejoin(b)
	return b, err
}

// Pools that are decoded apart are what the SDK makes of them, whichever fields they have: those of a
// newer version of the SDK are looked at here.
func TestPoolsApartAreWhatTheSDKMakesOfThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func() bool { return rapid.IntRange(0, 3).Draw(t, "leave out") > 0 }
		if rapid.Bool().Draw(t, "everything") {
			some = func() bool { return true }
		}
		full, shown := filling{some: some}, &armnetwork.LoadBalancer{}
		full.fill(reflect.ValueOf(shown).Elem())
		text := marshal(t, shown)
		want := &armnetwork.LoadBalancer{}
		if err := json.Unmarshal(text, want); err != nil {
			t.Fatal(err)
		}
		got, err := decodeApart(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v (-SDK +apart):\n%s", err, diff)
		}
	})
}

func marshal(t interface{ Fatal(...any) }, v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each load balancer of a list gets its own pools back, and what is not as it has to be is left to the SDK.
func TestPoolsApart(t *testing.T) {
	for _, tt := range []struct {
		name, text, rest string
		pools            string // of each load balancer, as it was named
	}{
		{"a load balancer", `{"name":"a","properties":{"probes":[],"backendAddressPools":[{"name":"p"},null]}}`, `{"name":"a","properties":{"probes":[],"backendAddressPools":[]}}`, "[[p -]]"},
		{
			"a list", `{"value": [ {"properties":{"backendAddressPools":[{"name":"]}\""}]}}, null, {}, {"properties":{"backendAddressPools": [ ] , "x":1} } ], "nextLink":"n"}`,
			`{"value": [ {"properties":{"backendAddressPools":[]}}, null, {}, {"properties":{"backendAddressPools": [] , "x":1} } ], "nextLink":"n"}`, `[[]}"] [] [] []]`,
		},
		{"no pools", `{"properties":{"backendAddressPools":null,"pools":[1]}}`, "", "[]"},
		{"pools of something else", `{"backendAddressPools":[],"x":{"properties":{"backendAddressPools":[{}]}}}`, "", "[]"},
		{"a pool that is none", `{"properties":{"backendAddressPools":[{"name":1}]}}`, "", "[]"},
		{"half a text", `{"properties":{"backendAddressPools":[{}]}`, "", "[]"},
		{"more than a text", `{"properties":{"backendAddressPools":[{}]}} {}`, "", "[]"},
		{"not JSON", `no such resource`, "", "[]"},
		{"an operation", `{"status":"Succeeded"}`, "", "[]"},
	} {
		rest, pools := SplitPools([]byte(tt.text))
		if tt.rest == "" {
			tt.rest = tt.text
		}
		if is := fmt.Sprint(namesOf(pools)); string(rest) != tt.rest || is != tt.pools {
			t.Errorf("%s: %s, pools %s", tt.name, rest, is)
		}
	}
}

func namesOf(all Apart) [][]string {
	names := make([][]string, len(all))
	for i, pools := range all {
		for _, p := range pools {
			name := "-"
			if p != nil {
				name = Value(p.Name)
			}
			names[i] = append(names[i], name)
		}
	}
	return names
}

// What is taken apart is a load balancer to the SDK if the whole is, and else it is not.
func FuzzSplitPools(f *testing.F) {
	f.Add([]byte(`{"name":"a","properties":{"probes":[],"backendAddressPools":[{"name":"p","properties":{"drainPeriodInSeconds":1}},null]}}`))
	f.Add([]byte(`{"value": [ {"properties":{"backendAddressPools":[{"name":"]}\""}]}}, null, {} ] }`))
	f.Add([]byte(`{"properties":{"backendAddressPools":[],"backendAddressPools":[{}]},"properties":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole := json.Unmarshal(text, &armnetwork.LoadBalancer{})
		if _, err := decodeApart(text); (err == nil) != (whole == nil) {
			t.Errorf("apart %v, whole %v", err, whole)
		}
	})
}

// What is decoded in one go takes a fraction of what the SDK takes.
func TestPoolsApartTakeAFraction(t *testing.T) {
	text := marshal(t, large())
	apart := testing.AllocsPerRun(5, func() { _, _ = decodeApart(text) })
	whole := testing.AllocsPerRun(5, func() { _ = json.Unmarshal(text, &armnetwork.LoadBalancer{}) })
	if apart > whole/3 {
		t.Errorf("%.0f allocations, the SDK has %.0f", apart, whole)
	}
}

// large has 200 pools of ten addresses.
func large() *armnetwork.LoadBalancer {
	shown := &armnetwork.LoadBalancer{Properties: &armnetwork.LoadBalancerPropertiesFormat{}}
	for i := range 200 {
		p := &armnetwork.BackendAddressPool{Name: to.Ptr(fmt.Sprint("pool-", i)), Etag: to.Ptr(`W/"5"`), Properties: &armnetwork.BackendAddressPoolPropertiesFormat{}}
		for a := range 10 {
			p.Properties.LoadBalancerBackendAddresses = append(p.Properties.LoadBalancerBackendAddresses, &armnetwork.LoadBalancerBackendAddress{
				Name: to.Ptr(fmt.Sprint("node-", a)), Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{
					IPAddress: to.Ptr(fmt.Sprintf("10.0.%d.%d", i, a)), AdminState: to.Ptr(armnetwork.LoadBalancerBackendAddressAdminStateNone),
					VirtualNetwork: &armnetwork.SubResource{ID: to.Ptr(vnet)},
				},
			})
		}
		shown.Properties.BackendAddressPools = append(shown.Properties.BackendAddressPools, p)
	}
	return shown
}

func BenchmarkDecode(b *testing.B) {
	text := marshal(b, large())
	for name, decode := range map[string]func([]byte) (*armnetwork.LoadBalancer, error){
		"apart": decodeApart,
		"whole": func(text []byte) (*armnetwork.LoadBalancer, error) {
			whole := &armnetwork.LoadBalancer{}
			return whole, json.Unmarshal(text, whole)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if got, err := decode(text); err != nil || len(got.Properties.BackendAddressPools) != 200 {
					b.Fatal(err)
				}
			}
		})
	}
}
