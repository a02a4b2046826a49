// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"encoding/json"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

const (
	network  = group + "Microsoft.Network/"
	compute  = group + "Microsoft.Compute/"
	poolID   = network + "loadBalancers/kubernetes/backendAddressPools/k8s"
	outbound = network + "loadBalancers/kubernetes/backendAddressPools/outbound"
	blue     = compute + "virtualMachineScaleSets/blue"
)

// profile is an interface in a pool of outbound rules, with unknown fields.
const profile = `"networkInterfaceConfigurations":[{"name":"nic","future":1,"properties":{"primary":true,"ipConfigurations":[{"name":"ip","future":2,"properties":{"primary":true,
	"applicationGatewayBackendAddressPools":[{"id":"/gw"}],"loadBalancerBackendAddressPools":[{"id":"` + outbound + `"}]}}]}}]`

func members(t *testing.T, ids ...string) (nic.Desired, nic.ManagedPools) {
	t.Helper()
	k8s := lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"}, Name: "k8s"}
	p := nic.Pool{ID: k8s, Family: lb.IPv4, Configuration: "kubernetes", AllNodes: true}
	for _, id := range ids {
		m, err := nic.ParseMachine("azure://" + compute + id)
		if err != nil {
			t.Fatal(err)
		}
		p.Members = append(p.Members, m)
	}
	return nic.NewDesired([]nic.Pool{p}, nil), nic.NewManagedPools(nil, []lb.PoolID{k8s})
}

func (a *arm) text(path string) string {
	text, _ := json.Marshal(a.of[strings.ToLower(path)])
	return string(text)
}

// A virtual machine joins a pool with one list and one write, and leaves it likewise; foreign pools
// remain.
func TestAVirtualMachineJoinsAndLeaves(t *testing.T) {
	t.Parallel()
	a, client := serve(t)
	const own = network + "networkInterfaces/n1"
	a.addResource(t, own, `{"location":"eastus","future":{"x":1},"properties":{"virtualMachine":{"id":"`+compute+`virtualMachines/n1"},"future":3,"ipConfigurations":[{"name":"ip","properties":{
		"primary":true,"privateIPAddressVersion":"IPv4","loadBalancerBackendAddressPools":[{"id":"`+outbound+`"}]}}]}}`)
	m, err := nic.ParseMachine("azure://" + compute + "virtualMachines/n1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		member bool
		want   string
	}{{true, `[{"id":"` + outbound + `"},{"id":"` + poolID + `"}]`}, {false, `[{"id":"` + outbound + `"}]`}} {
		want, managed := members(t)
		if tt.member {
			want, managed = members(t, "virtualMachines/n1")
		}
		interfaces, err := client.ListInterfaces(t.Context(), "s1", "rg")
		if err != nil {
			t.Fatal(err)
		}
		interfaces[0].Machine = m.Key() // not sent by a write, and not stored by this server
		step := nic.NextStep(m, interfaces, want.MachinePools(m), managed)
		if step.Write == nil {
			t.Fatalf("nothing to write: %+v", step)
		}
		shown, err := client.PutInterface(t.Context(), *step.Write)
		if err != nil {
			t.Fatal(err)
		}
		shown.Machine = m.Key()
		if second := nic.NextStep(m, []lb.NetworkInterface{shown}, want.MachinePools(m), managed); second != (nic.Step{}) {
			t.Errorf("not done: %+v", second)
		}
		if calls := a.takeRequests(); calls != "GET Microsoft.Network/networkInterfaces\nPUT Microsoft.Network/networkInterfaces/n1\nGET Microsoft.Network/networkInterfaces/n1" {
			t.Errorf("asked\n%s", calls)
		}
		if text := a.text(own); !strings.Contains(text, tt.want) || !strings.Contains(text, `"future":{"x":1}`) || !strings.Contains(text, `"future":3`) {
			t.Errorf("Azure holds %s", text)
		}
	}
}

// A uniform scale set with manual upgrades: first the model, then one batch of instances that lack
// only it, then the others one by one.
func TestAScaleSetJoins(t *testing.T) {
	t.Parallel()
	a, client := serve(t)
	a.addResource(t, blue, `{"location":"eastus","future":4,"properties":{"orchestrationMode":"Uniform","upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"b"},"networkProfile":{"future":5,`+profile+`}}}}`)
	for _, id := range []string{"0", "1", "2"} {
		a.addResource(t, blue+"/virtualMachines/"+id, `{"location":"eastus","instanceId":"`+id+`","properties":{"latestModelApplied":true,"future":6,"storageProfile":{"imageReference":{"id":"/i"}},"networkProfileConfiguration":{`+profile+`}}}`)
	}
	want, own := members(t, "virtualMachineScaleSets/blue/virtualMachines/0", "virtualMachineScaleSets/blue/virtualMachines/1", "virtualMachineScaleSets/blue/virtualMachines/2")
	known := nic.ScaleSetState{UpToDate: map[string]bool{"0": true, "1": true}}
	rounds := 0
	for ; rounds < 5; rounds++ {
		if runRound(t, client, want, own, known) {
			break
		}
	}
	if rounds != 2 {
		t.Errorf("done after %d rounds", rounds)
	}
	const scaleSet, instances = "GET Microsoft.Compute/virtualMachineScaleSets/blue\n", "GET Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines\n"
	wantCalls := scaleSet + instances + "PATCH Microsoft.Compute/virtualMachineScaleSets/blue\n" + scaleSet +
		scaleSet + instances + "POST Microsoft.Compute/virtualMachineScaleSets/blue/manualupgrade 0,1\n" +
		"GET Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines/2\nPUT Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines/2\nGET Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines/2\n" +
		scaleSet + strings.TrimSpace(instances)
	if calls := a.takeRequests(); calls != wantCalls {
		t.Errorf("asked\n%s\nwant\n%s", calls, wantCalls)
	}
	for _, path := range []string{blue, blue + "/virtualMachines/0", blue + "/virtualMachines/2"} {
		text := a.text(path)
		for _, kept := range []string{`{"id":"` + outbound + `"},{"id":"` + poolID + `"}`, `"applicationGatewayBackendAddressPools":[{"id":"/gw"}]`, `"future":1`, `"future":2`} {
			if !strings.Contains(text, kept) {
				t.Errorf("%s: no %s in %s", path, kept, text)
			}
		}
	}
	if text := a.text(blue); !strings.Contains(text, `"future":4`) || !strings.Contains(text, `"future":5`) || !strings.Contains(text, "computerNamePrefix") {
		t.Errorf("the scale set is %s", text)
	}
	if text := a.text(blue + "/virtualMachines/2"); !strings.Contains(text, `"future":6`) || strings.Contains(text, "imageReference") {
		t.Errorf("the instance was written as %s", text)
	}
}

// runRound runs one round and reports whether nothing was left to do.
func runRound(t *testing.T, client *azure.MachineClient, want nic.Desired, own nic.ManagedPools, known nic.ScaleSetState) bool {
	t.Helper()
	id, err := lb.ParseResourceID(blue, lb.TypeScaleSet)
	if err != nil {
		t.Fatal(err)
	}
	set, err := client.GetScaleSet(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	instances, err := client.ListInstances(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	steps := nic.PlanScaleSet(set, instances, want, own, known)
	if steps.Model != nil {
		if _, err := client.PatchModel(t.Context(), *steps.Model); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.UpgradeInstances(t.Context(), id, steps.Upgrade); err != nil {
		t.Fatal(err)
	}
	for _, next := range steps.Write {
		read, err := client.GetInstance(t.Context(), id, next.ID)
		if err != nil {
			t.Fatal(err)
		}
		next.Etag, next.Origin = read.Etag, read.Origin
		if _, err := client.PutInstance(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	return steps.IsDone()
}

// A concurrent write leads to 412, and nothing is lost.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	a, client := serve(t)
	a.addResource(t, network+"networkInterfaces/n1", `{"properties":{"ipConfigurations":[{"name":"ip","properties":{}}]}}`)
	interfaces, err := client.ListInterfaces(t.Context(), "s1", "rg")
	if err != nil || len(interfaces) != 1 {
		t.Fatalf("%v, %v", interfaces, err)
	}
	a.changeEtag(strings.ToLower(network + "networkInterfaces/n1"))
	interfaces[0].IPConfigurations[0].Pools = []string{poolID}
	_, err = client.PutInterface(t.Context(), interfaces[0])
	if f := armerror.FromError(err); !f.IsPreconditionFailed() || strings.Contains(a.text(network+"networkInterfaces/n1"), poolID) {
		t.Errorf("got %v", err)
	}
	read, err := client.GetInterface(t.Context(), interfaces[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	read.IPConfigurations[0].Pools = []string{poolID}
	if shown, err := client.PutInterface(t.Context(), read); err != nil || shown.IPConfigurations[0].Pools[0] != poolID {
		t.Errorf("%+v, %v", shown, err)
	}
}

// Rejected requests and unexpected responses.
func TestRefused(t *testing.T) {
	t.Parallel()
	a, client := serve(t)
	id, err := lb.ParseResourceID(blue, lb.TypeScaleSet)
	if err != nil {
		t.Fatal(err)
	}
	a.addResource(t, blue, `{"properties":{}}`)
	a.addResource(t, blue+"/virtualMachines/0", `{"properties":{}}`)
	a.of[strings.ToLower(blue+"/virtualMachines/odd")] = object{"id": blue + "/virtualMachines/odd", "properties": object{}}
	sets, err := client.ListScaleSets(t.Context(), "s1", "rg")
	if err != nil || len(sets) != 1 || sets[0].ID != id {
		t.Fatalf("%+v, %v", sets, err)
	}
	a.takeRequests()
	for name, tt := range map[string]struct {
		code string
		call func() error
	}{
		"a scale set of a list has no etag": {"NoEtag", func() error { _, err := client.PatchModel(t.Context(), sets[0]); return err }},
		"an interface that was not read":    {"NotRead", func() error { _, err := client.PutInterface(t.Context(), lb.NetworkInterface{Etag: "e"}); return err }},
		"an instance that was not read":     {"NotRead", func() error { _, err := client.PutInstance(t.Context(), lb.Instance{Etag: "e"}); return err }},
		"an instance that is no number":     {"InvalidID", func() error { _, err := client.GetInstance(t.Context(), id, ".."); return err }},
		"an odd instance in a list":         {armerror.CodeOutcomeUnknown, func() error { _, err := client.ListInstances(t.Context(), id); return err }},
		"another number of interfaces": {"OtherShape", func() error {
			next := sets[0]
			next.Interfaces = make([]lb.InterfaceConfiguration, 1)
			_, err := client.PatchModel(t.Context(), next)
			return err
		}},
	} {
		if f := armerror.FromError(tt.call()); f == nil || f.Code != tt.code {
			t.Errorf("%s: got %v", name, f)
		}
	}
	if calls := a.takeRequests(); calls != "GET Microsoft.Compute/virtualMachineScaleSets/blue/virtualMachines" {
		t.Errorf("asked\n%s", calls)
	}
	if err := client.UpgradeInstances(t.Context(), id, nil); err != nil || a.takeRequests() != "" {
		t.Errorf("no instance: %v", err)
	}
}

// The primary interface of a machine is the marked or the only one.
func TestThePrimaryInterface(t *testing.T) {
	t.Parallel()
	a, client := serve(t)
	const other = "/subscriptions/s1/resourceGroups/net/providers/Microsoft.Network/networkInterfaces/"
	id, err := lb.ParseResourceID(compute+"virtualMachines/n1", lb.TypeVirtualMachine)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ interfaces, want, code string }{
		{`[{"id":"` + other + `a"}]`, "net/a", ""},
		{`[{"id":"` + other + `a","properties":{"primary":false}},{"id":"` + other + `b","properties":{"primary":true}}]`, "net/b", ""},
		{`[{"id":"` + other + `a"},{"id":"` + other + `b"}]`, "/", ""},
		{`[]`, "/", ""},
		{`[{"id":"/subscriptions/s1/resourceGroups/net/providers/Microsoft.Network/loadBalancers/a"}]`, "/", armerror.CodeOutcomeUnknown},
		{`[{"id":"` + other + `..%2fa"}]`, "/", armerror.CodeOutcomeUnknown},
		{`{}`, "/", armerror.CodeOutcomeUnknown},
	} {
		a.addResource(t, compute+"virtualMachines/n1", `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":`+tt.interfaces+`}}}`)
		got, err := client.PrimaryInterface(t.Context(), id)
		code := ""
		if f := armerror.FromError(err); f != nil {
			code = f.Code
		}
		if got.ResourceGroup+"/"+got.Name != tt.want || code != tt.code {
			t.Errorf("%s: %+v, %v", tt.interfaces, got, err)
		}
	}
}
