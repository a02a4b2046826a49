// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// Exit codes of weir migrate plan.
func TestExitCodesOfMigrationPlans(t *testing.T) {
	const of = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Network/"
	emu := patient.Watch(t, armemu.New(armemu.Options{}))
	server := httptest.NewServer(emu)
	defer server.Close()
	services := filepath.Join(t.TempDir(), "services.yaml")
	if err := os.WriteFile(services, []byte(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, loadBalancerClass: weir.dev/azure, ports: [{port: 80}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := []string{"migrate", "plan", "--azure-endpoint", server.URL, "--config", "../../internal/app/testdata/plan/azure.json", "-f", services}
	current := func(about string, want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("%s: exit code %d, want %d", about, got, want)
		}
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	var err error
	if os.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	put := func(properties string) {
		t.Helper()
		if err := emu.Put(of+"loadBalancers/kubernetes", []byte(`{"location":"eastus","sku":{"name":"Basic"},"properties":{`+properties+`}}`)); err != nil {
			t.Fatal(err)
		}
	}
	current("nothing is Basic", 0, plan...)
	put(``)
	current("one is Basic", 2, plan...)
	current("a plan of all else, which is not complete", 1, append([]string{"plan"}, plan[2:]...)...)
	current("one is Basic, for machines", 2, append(plan, "-o", "json")...)
	put(`"loadBalancingRules":[{"name":"ssh","properties":{}}]`)
	current("somebody's rule", 3, plan...)
	current("no such output", 1, append(plan, "-o", "xml")...)
	current("an argument", 1, append(plan, "x")...)
	current("no patience", 1, append(plan, "--timeout", "0s")...)
	current("no such flag", 1, append(plan, "--nonsense")...)
	current("no such command", 2, "migrate", "away")
	current("an address that is missing", 2, "migrate", "give-up")
	current("what is no address", 2, "migrate", "give-up", "x")
	current("help", 0, "migrate")
}
