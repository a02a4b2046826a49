// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/skumigration"
	"weir.dev/weir/lab/armemu"
)

// planned is the input of a plan: objects from files, and Azure.
type planned struct {
	objects []string
	azure   []byte
	// lets restricts the caller in Azure.
	lets armemu.Options
}

func (s *Stage) planned() planned {
	f, err := s.readObjects()
	failOn(err)
	p := planned{azure: s.emulator.Snapshot(), lets: armemu.Options{Role: s.opts.Role, MaxStandardIPs: s.opts.MaxStandardIPs}}
	add := func(version, kind string, object any) {
		text, err := json.Marshal(object)
		failOn(err)
		p.objects = append(p.objects, strings.Replace(string(text), "{", fmt.Sprintf("{\"apiVersion\":%q,\"kind\":%q,", version, kind), 1))
	}
	for i := range f.services {
		add("v1", "Service", f.services[i])
	}
	for i := range f.nodes {
		add("v1", "Node", f.nodes[i])
	}
	for i := range f.pools {
		f.pools[i].TypeMeta = metav1.TypeMeta{}
		add(v1alpha1.GroupVersion.String(), "BackendPool", f.pools[i])
	}
	return p
}

// options returns the options of a plan with more lines in azure.json.
func (p planned) options(t *testing.T, more string) app.PlanOptions {
	t.Helper()
	emu := armemu.New(p.lets)
	if err := emu.Restore(p.azure); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	if !strings.Contains(more, "nodeIPConfiguration") {
		more += `,"localServicePools":"own"`
	}
	file := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"subscriptionId":%q,"resourceGroup":%q,"location":%q,"vnetName":"net","subnetName":"nodes","securityGroupName":"nodes"%s}`,
		subscription, group, region, more), 0o600); err != nil {
		t.Fatal(err)
	}
	o := app.PlanOptions{Files: []string{"-"}, Stdin: strings.NewReader(strings.Join(p.objects, "\n---\n"))}
	o.ConfigFile, o.ClusterName, o.AzureEndpoint, o.LoadBalancerClass, o.Log = file, clusterName, server.URL, app.LoadBalancerClass, slog.New(slog.DiscardHandler)
	return o
}

// azureJSON returns the additional azure.json of a cluster of Basic load balancers.
func (c basicCluster) azureJSON() string {
	s, err := New(c.options())
	failOn(err)
	more := `,"loadBalancerSku":"standard"`
	if s.hasInterfaces() {
		more += `,"loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration"`
	}
	if c.several {
		more += fmt.Sprintf(`,"multipleStandardLoadBalancerConfigurations":[{"name":%q},{"name":%q}]`, clusterName, secondName)
	}
	return more
}

func (p planned) migration(t *testing.T, c basicCluster) skumigration.Plan {
	t.Helper()
	plan, err := app.PlanMigration(t.Context(), p.options(t, c.azureJSON()))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func (p planned) all(t *testing.T, c basicCluster) dryrun.Report {
	t.Helper()
	plan, err := app.Plan(t.Context(), p.options(t, c.azureJSON()))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
