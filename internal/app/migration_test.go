// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/skumigration"
)

const (
	ofNetwork = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Network/"
	basicOf   = "a1111111111111111111111111111111"
)

// basicCloud is an Azure with a Basic load balancer for one Service.
func basicCloud(t *testing.T) *cloud {
	t.Helper()
	c := newCloud(t, nil)
	for _, r := range []struct{ id, body string }{
		{"virtualNetworks/vnet", `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16",
			"networkSecurityGroup":{"id":"` + ofNetwork + `networkSecurityGroups/nsg"}}}]}}`},
		{"publicIPAddresses/kubernetes-" + basicOf, `{"location":"eastus","sku":{"name":"Basic"},"tags":{"k8s-azure-cluster-name":"kubernetes","k8s-azure-service":"shop/web"},
			"properties":{"publicIPAllocationMethod":"Dynamic","ipAddress":"198.18.0.9","publicIPAddressVersion":"IPv4"}}`},
		{"loadBalancers/kubernetes", `{"location":"eastus","sku":{"name":"Basic"},"properties":{"backendAddressPools":[{"name":"kubernetes"}],
			"frontendIPConfigurations":[{"name":"` + basicOf + `","properties":{"publicIPAddress":{"id":"` + ofNetwork + `publicIPAddresses/kubernetes-` + basicOf + `"}}}]}}`},
		{"networkInterfaces/n1", `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"primary":true,"subnet":{"id":"` + ofNetwork + `virtualNetworks/vnet/subnets/nodes"},
			"loadBalancerBackendAddressPools":[{"id":"` + ofNetwork + `loadBalancers/kubernetes/backendAddressPools/kubernetes"}]}}]}}`},
	} {
		if err := c.Put(ofNetwork+r.id, []byte(r.body)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// ofOne returns the options of a plan for one Service.
func (c *cloud) ofOne(annotations ...string) PlanOptions {
	o := PlanOptions{Files: []string{"-"}, Stdin: strings.NewReader(`{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: web, uid: 11111111-1111-1111-1111-111111111111, annotations: {` + strings.Join(annotations, ", ") + `}},
		spec: {type: LoadBalancer, ipFamilies: [IPv4], loadBalancerClass: weir.dev/azure, ports: [{port: 80, nodePort: 30080, protocol: TCP}], externalTrafficPolicy: Cluster}, status: {loadBalancer: {ingress: [{ip: 198.18.0.9}]}}}`)}
	o.ConfigFile, o.ClusterName, o.AzureEndpoint, o.LoadBalancerClass, o.Log = "testdata/plan/azure.json", "kubernetes", c.url, LoadBalancerClass, slog.New(slog.DiscardHandler)
	return o
}

// A plan with a Service on a Basic load balancer is incomplete and names the next step.
func TestThePlanOfAServiceOnABasicLoadBalancer(t *testing.T) {
	p, err := Plan(t.Context(), basicCloud(t).ofOne())
	const says = "load balancer kubernetes is of SKU Basic: Weir writes Standard ones only; weir migrate plan shows how it becomes one"
	if err == nil || !strings.Contains(err.Error(), says) || len(p.Services) != 1 || !strings.Contains(p.Services[0].Failed, says) || p.CountRejected() > 0 {
		t.Errorf("%v\n%s", err, p.FormatText(false))
	}
}

// Desired ports count toward Azure's limit: one machine cannot have 301, unless they belong to a pool of
// their own.
func TestThePlanOfAMigrationWithTooManyRules(t *testing.T) {
	for policy, stops := range map[string]bool{"externalTrafficPolicy: Cluster": true, "healthCheckNodePort: 32000, externalTrafficPolicy: Local": false} {
		var ports []string
		for n := range 301 {
			ports = append(ports, fmt.Sprintf("{name: p%d, port: %d, nodePort: %d, protocol: TCP}", n, 1000+n, 30000+n))
		}
		o := basicCloud(t).ofOne()
		text, err := io.ReadAll(o.Stdin)
		if err != nil {
			t.Fatal(err)
		}
		many := strings.NewReplacer("{port: 80, nodePort: 30080, protocol: TCP}", strings.Join(ports, ", "), "externalTrafficPolicy: Cluster", policy)
		o.Stdin = strings.NewReader(many.Replace(string(text)))
		p, err := PlanMigration(t.Context(), o)
		if err != nil || (p.State == skumigration.PlanBlocked) != stops || !strings.Contains(p.Text(), "(LimitReached)") {
			t.Errorf("%s: %v, %s\n%s", policy, err, p.State, p.Text())
		}
	}
}

// migrationPlan plans for one Service and fails the test on any write.
func (c *cloud) migrationPlan(t *testing.T, annotations ...string) skumigration.Plan {
	t.Helper()
	p, err := PlanMigration(t.Context(), c.ofOne(annotations...))
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Writes+s.Deletes > 0 {
		t.Errorf("the plan wrote to Azure: %+v", s)
	}
	return p
}

func TestThePlanOfAMigration(t *testing.T) {
	c := basicCloud(t)
	p := c.migrationPlan(t)
	want, err := os.ReadFile(filepath.Join("testdata", "migration", "plan.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if p.State != skumigration.PlanReady || p.Text() != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", p.State, p.Text(), want)
	}
	text, err := p.JSON()
	var second skumigration.Plan
	if err != nil || json.Unmarshal(text, &second) != nil || second.LoadBalancers[0].Addresses[0].IP.String() != "198.18.0.9" || len(second.Steps) != 6 {
		t.Errorf("for programs: %v\n%s", err, text)
	}
}

func TestThePlanOfAMigrationThatCannotStart(t *testing.T) {
	c := basicCloud(t)
	id := ofNetwork + "loadBalancers/kubernetes"
	raw, _ := c.Get(id)
	if err := c.Put(id, []byte(strings.Replace(string(raw), `"name":"`+basicOf+`"`, `"name":"vip"`, 1))); err != nil {
		t.Fatal(err)
	}
	if p := c.migrationPlan(t); p.State != skumigration.PlanBlocked || !strings.Contains(p.Text(), "\nstops it (ForeignFrontend): frontend vip of load balancer kubernetes belongs to no Service") {
		t.Errorf("%s:\n%s", p.State, p.Text())
	}
}

func TestThePlanOfAClusterWithoutBasic(t *testing.T) {
	if p := newCloud(t, nil).migrationPlan(t); p.State != skumigration.PlanEmpty || p.Text() != "No load balancer of the cluster is Basic: nothing is to be migrated.\n" {
		t.Errorf("%s:\n%s", p.State, p.Text())
	}
}

// A dry-run Service gets nothing, even if its load balancer was deleted manually.
func TestThePlanOfADryRun(t *testing.T) {
	c := newCloud(t, nil)
	free := `{"location":"eastus","sku":{"name":"Basic"},"tags":{"k8s-azure-cluster-name":"kubernetes","k8s-azure-service":"shop/web"},
		"properties":{"publicIPAllocationMethod":"Static","ipAddress":"198.18.0.9","publicIPAddressVersion":"IPv4"}}`
	if err := c.Put(ofNetwork+"publicIPAddresses/kubernetes-"+basicOf, []byte(free)); err != nil {
		t.Fatal(err)
	}
	if p := c.migrationPlan(t); p.State != skumigration.PlanReady {
		t.Errorf("%s:\n%s", p.State, p.Text())
	}
	if p := c.migrationPlan(t, metadata.DryRunAnnotation+`: "true"`); p.State != skumigration.PlanEmpty {
		t.Errorf("%s:\n%s", p.State, p.Text())
	}
}

// The guide shows the actual plan of its example cluster.
func TestThePlanOfTheGuide(t *testing.T) {
	const guide = "../../docs/guide/"
	seed, err := os.ReadFile(guide + "basic/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	c := newCloud(t, nil)
	if err := c.Restore(seed); err != nil {
		t.Fatal(err)
	}
	o := PlanOptions{Files: []string{guide + "basic/cluster.yaml"}}
	o.ConfigFile, o.ClusterName, o.AzureEndpoint, o.Log = guide+"basic/azure.json", "kubernetes", c.url, slog.New(slog.DiscardHandler)
	p, err := PlanMigration(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(guide + "basic-to-standard.md")
	if err != nil || p.State != skumigration.PlanReady || !strings.Contains(string(page), "\n"+p.Text()+"```\n") {
		t.Errorf("%v; the guide does not show\n%s", err, p.Text())
	}
}
