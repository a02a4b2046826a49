// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

const (
	poolA = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/k8s"
	poolB = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/other/backendAddressPools/x"
)

var (
	nicPlace = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeNetworkInterface}
	setPlace = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeScaleSet}
	blue     = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeScaleSet, Name: "blue"}
)

// ipConfiguration has an unknown field and a number that float64 cannot represent.
func ipConfiguration(version, pools string) string {
	return `{"name":"ip` + version + `","unknown":{"n":12345678901234567890},"properties":{"primary":` + fmt.Sprint(version == "IPv4") + `,"privateIPAddressVersion":"` + version +
		`","applicationGatewayBackendAddressPools":[{"id":"/gw"}],"subnet":{"id":"/subnet"},"loadBalancerBackendAddressPools":[` + pools + `]}}`
}

func profile(pools string) string {
	return `"networkInterfaceConfigurations":[{"name":"nic","futureField":[1],"properties":{"primary":true,"networkSecurityGroup":{"id":"/nsg"},"ipConfigurations":[` + ipConfiguration("IPv4", pools) + "," + ipConfiguration("IPv6", "") + `]}}]`
}

func nicText(pools string) string {
	return `{"id":"/subscriptions/s1/resourceGroups/RG/providers/Microsoft.Network/networkInterfaces/n1","etag":"W/\"e1\"","location":"eastus","tags":{"a":"<b>"},"future":{"x":[null]},
		"properties":{"provisioningState":"Succeeded","virtualMachine":{"id":"/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/N1"},
		"enableAcceleratedNetworking":true,"networkSecurityGroup":{"id":"/nsg"},"newSetting":7,"ipConfigurations":[` + ipConfiguration("IPv4", pools) + "," + ipConfiguration("IPv6", "") + `]}}`
}

func setText(pools string) string {
	return `{"id":"/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/blue","etag":"\"1\"","location":"eastus","properties":{"provisioningState":"Succeeded",
		"orchestrationMode":"Uniform","upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{"osProfile":{"adminUsername":"x"},"networkProfile":{"healthProbe":{"id":"/p"},` + profile(pools) + `}}}}`
}

func instanceText(pools string) string {
	return `{"id":"/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines/3","name":"blue_3","instanceId":"3","etag":"\"2\"","location":"eastus","sku":{"name":"s"},
		"properties":{"provisioningState":"Succeeded","latestModelApplied":true,"vmId":"u","protectionPolicy":{"protectFromScaleSetActions":true},"future":1,
		"storageProfile":{"imageReference":{"id":"/i"},"osDisk":{"name":"d"}},"networkProfileConfiguration":{` + profile(pools) + `}}}`
}

func entry(ids ...string) string {
	var names []string
	for _, id := range ids {
		names = append(names, `{"id":"`+id+`","extra":"kept"}`)
	}
	return strings.Join(names, ",")
}

func TestDecodeNetworkProfiles(t *testing.T) {
	want := []lb.IPConfiguration{{Name: "ipIPv4", Family: lb.IPv4, Primary: true, Subnet: "/subnet", Pools: []string{poolA, poolB}}, {Name: "ipIPv6", Family: lb.IPv6, Subnet: "/subnet"}}
	i, err := DecodeInterface(nicPlace, newDocument(nicText(entry(poolA, poolB))))
	if err != nil || i.ID.Name != "n1" || i.ID.ResourceGroup != "rg" || i.Etag != `W/"e1"` || i.Provisioning != lb.Succeeded || i.Machine != "/subscriptions/s1/resourcegroups/rg/providers/microsoft.compute/virtualmachines/n1" {
		t.Errorf("got %+v, %v", i, err)
	}
	s, err := DecodeScaleSet(setPlace, newDocument(setText(entry(poolA, poolB))))
	if err != nil || s.ID != blue || s.Etag != `"1"` || !s.Uniform || s.UpgradeMode != lb.UpgradeManual || len(s.Interfaces) != 1 || !s.Interfaces[0].Primary {
		t.Fatalf("got %+v, %v", s, err)
	}
	if flexible, err := DecodeScaleSet(setPlace, newDocument(strings.Replace(setText(""), "Uniform", "Flexible", 1))); err != nil || flexible.Uniform {
		t.Errorf("got %+v, %v", flexible, err)
	}
	vm, err := DecodeInstance(blue, newDocument(instanceText(entry(poolA, poolB))))
	if err != nil || vm.ID != "3" || vm.Etag != `"2"` || !vm.LatestModel || !vm.Protected || len(vm.Interfaces) != 1 {
		t.Fatalf("got %+v, %v", vm, err)
	}
	for name, got := range map[string][]lb.IPConfiguration{"interface": i.IPConfigurations, "scale set": s.Interfaces[0].IPConfigurations, "instance": vm.Interfaces[0].IPConfigurations} {
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, got := range map[string]string{"interface": i.SecurityGroup, "scale set": s.Interfaces[0].SecurityGroup, "instance": vm.Interfaces[0].SecurityGroup} {
		if got != "/nsg" {
			t.Errorf("%s has the security group %q", name, got)
		}
	}
}

// IDs in responses are validated, since they become part of a URL.
func TestDecodeRefuses(t *testing.T) {
	if _, err := DecodeInterface(nicPlace, newDocument(`{"id":"/a/..","properties":{}}`)); err == nil {
		t.Error("a name that is a way out")
	}
	if _, err := DecodeScaleSet(setPlace, newDocument(`{"id":"/a/b?c","properties":{}}`)); err == nil {
		t.Error("a name that is a query")
	}
	if _, err := DecodeInstance(blue, newDocument(`{"id":"/a/3a","properties":{}}`)); err == nil {
		t.Error("an instance that is no number")
	}
	for _, text := range []string{`[]`, `{"id":1}`, `{"properties":{"ipConfigurations":{}}}`} {
		if _, err := DecodeInterface(nicPlace, newDocument(text)); err == nil {
			t.Errorf("%s is taken for an interface", text)
		}
	}
}

// paths flattens a body into paths and values.
func paths(prefix string, v any, into map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			paths(prefix+"."+key, item, into)
		}
	case []any:
		into[prefix+".length"] = len(v)
		for i, item := range v {
			paths(fmt.Sprintf("%s[%d]", prefix, i), item, into)
		}
	default:
		into[prefix] = v
	}
}

func valuesOf(t *testing.T, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := readOrigin(newDocument(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	paths("", whole, values)
	return values
}

// A write sends all properties that were read, except read-only ones and the changed pools.
func TestAWriteChangesPoolsAlone(t *testing.T) {
	onlyAzures := map[string][]string{
		"interface": {".etag", ".properties.provisioningState", ".properties.virtualMachine"},
		"instance":  {".id", ".name", ".instanceId", ".etag", ".sku", ".properties.provisioningState", ".properties.latestModelApplied", ".properties.vmId", ".properties.storageProfile.imageReference"},
	}
	for kind, text := range map[string]func(string) string{"interface": nicText, "scale set": setText, "instance": instanceText} {
		t.Run(kind, func(t *testing.T) {
			shown := newDocument(text(entry(poolB)))
			body, err := encodeWith(kind, shown, []string{poolB, poolA})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := json.Marshal(body); err != nil || !strings.Contains(string(text), `{"n":12345678901234567890}`) {
				t.Errorf("a number is not what it was: %s, %v", text, err)
			}
			before, got := valuesOf(t, shown.Text), valuesOf(t, body)
			added := 0
			for path, value := range got {
				if before[path] == value {
					continue
				}
				if !strings.Contains(path, "ipConfigurations[0].properties.loadBalancerBackendAddressPools") {
					t.Errorf("%s becomes %v", path, value)
				}
				added++
			}
			if added != 2 { // the pool's ID and the length
				t.Errorf("%d values are changed", added)
			}
			for path := range before {
				azures := false
				for _, prefix := range onlyAzures[kind] {
					azures = azures || strings.HasPrefix(path, prefix)
				}
				inPatch := kind != "scale set" || strings.Contains(path, "networkInterfaceConfigurations")
				if _, sent := got[path]; sent != (inPatch && !azures) {
					t.Errorf("%s is sent: %v", path, sent)
				}
			}
		})
	}
}

func encodeWith(kind string, shown Document, pools []string) (any, error) {
	switch kind {
	case "interface":
		i, _ := DecodeInterface(nicPlace, shown)
		i.IPConfigurations[0].Pools = pools
		return EncodeInterface(i)
	case "scale set":
		s, _ := DecodeScaleSet(setPlace, shown)
		s.Interfaces[0].IPConfigurations[0].Pools = pools
		return EncodeModel(s)
	}
	vm, _ := DecodeInstance(blue, shown)
	vm.Interfaces[0].IPConfigurations[0].Pools = pools
	return EncodeInstance(vm)
}

// Written pools are read back unchanged, and a second write is identical.
func TestPoolsAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOf(rapid.SampledFrom([]string{poolA, poolB, strings.ToUpper(poolA), "/p"}))
		before, after := some.Draw(t, "before"), some.Draw(t, "after")
		for kind, text := range map[string]func(string) string{"interface": nicText, "scale set": setText, "instance": instanceText} {
			body, err := encodeWith(kind, newDocument(text(entry(before...))), after)
			if err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, part := range strings.Split(string(written), `"loadBalancerBackendAddressPools":`)[1:2] {
				var pools []struct{ ID string }
				if err := json.NewDecoder(strings.NewReader(part)).Decode(&pools); err != nil {
					t.Fatal(err)
				}
				for _, p := range pools {
					got = append(got, p.ID)
				}
			}
			if strings.Join(got, " ") != strings.Join(after, " ") {
				t.Fatalf("%s: wrote %v, want %v", kind, got, after)
			}
		}
	})
}

// Unread resources, or those of another shape, are not written.
func TestEncodeRefuses(t *testing.T) {
	if _, err := EncodeInterface(lb.NetworkInterface{}); !errors.Is(err, ErrNotRead) {
		t.Errorf("got %v", err)
	}
	i, _ := DecodeInterface(nicPlace, newDocument(nicText("")))
	i.IPConfigurations = i.IPConfigurations[:1]
	if _, err := EncodeInterface(i); !errors.Is(err, ErrOtherShape) {
		t.Errorf("got %v", err)
	}
	i, _ = DecodeInterface(nicPlace, newDocument(nicText("")))
	i.IPConfigurations[0].Name = "another"
	if _, err := EncodeInterface(i); !errors.Is(err, ErrOtherShape) {
		t.Errorf("got %v", err)
	}
	s, _ := DecodeScaleSet(setPlace, newDocument(setText("")))
	s.Interfaces = nil
	if _, err := EncodeModel(s); !errors.Is(err, ErrOtherShape) {
		t.Errorf("got %v", err)
	}
	bare, _ := DecodeInterface(nicPlace, newDocument(`{"id":"/n1","properties":{"ipConfigurations":[{"name":"ip"}]}}`))
	bare.IPConfigurations[0].Pools = []string{poolA}
	if _, err := EncodeInterface(bare); !errors.Is(err, ErrOtherShape) {
		t.Errorf("got %v", err)
	}
}

// Read-only fields of an interface, by the SDK's sources, are not sent.
func TestReadOnlyFieldsOfInterfacesAreNotSent(t *testing.T) {
	top, properties, ips := object{"id": "/n1"}, object{}, object{}
	places := map[string]object{"Interface": top, "InterfacePropertiesFormat": properties, "InterfaceIPConfiguration": ips, "InterfaceDNSSettings": {}}
	properties["dnsSettings"] = places["InterfaceDNSSettings"]
	n := 0
	for field := range readOnlyFields(t) {
		kind, name, _ := strings.Cut(field, ".")
		key := strings.ToLower(name[:1]) + name[1:]
		key = strings.NewReplacer("GUID", "Guid", "DNS", "Dns").Replace(key)
		if o := places[kind]; o != nil && key != "ipConfigurations" && key != "id" {
			o[key], n = "only Azure's", n+1
		}
	}
	properties["ipConfigurations"] = []any{ips}
	top["properties"] = properties
	if properties["virtualMachine"] = nil; n < 12 {
		t.Fatalf("only %d fields are read-only", n)
	}
	delete(properties, "primary") // of another type
	ips["name"] = "ip"
	text, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	i, err := DecodeInterface(nicPlace, newDocument(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := EncodeInterface(i)
	if err != nil {
		t.Fatal(err)
	}
	for path, value := range valuesOf(t, body) {
		if value == "only Azure's" {
			t.Errorf("%s is sent", path)
		}
	}
}
