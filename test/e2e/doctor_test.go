// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
)

// With config/ and the Azure role installed, all requirements are met. Missing ones are named;
// without permission to check, the result is unknown.
func TestDoctor(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","subnetName":"nodes","securityGroupName":"nsg","aadClientSecret":"hunter2hunter2"}`)
	l.must(l.emulator.Put(network+"/networkSecurityGroups/nsg", []byte(`{"location":"eastus"}`)))
	l.pool("web")
	(&broken{lab: l, t: t}).secret("azure.json")
	l.controller()
	actions := azureRole().Actions
	azure := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.URL.Path, "/providers/Microsoft.Authorization/permissions") {
			l.emulator.ServeHTTP(w, req)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"value": []any{map[string]any{"actions": actions, "notActions": []string{}}}})
	}))
	t.Cleanup(azure.Close)
	withAzure := []string{"--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", azure.URL}
	asks := func(kubeconfig string, flags ...string) (code int, text string, verdicts map[string]string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append([]string{"doctor", "-o", "json", "--kubeconfig", kubeconfig}, flags...)...)
		out, _ := cmd.Output()
		var r struct {
			Checks []struct{ Name, Result, Why, Do string }
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		verdicts = map[string]string{}
		for _, c := range r.Checks {
			verdicts[c.Name] = c.Result + " " + c.Why
			if (c.Result == "FAIL" || c.Result == "WARN") && c.Do == "" {
				t.Errorf("%s: nothing helps", c.Name)
			}
		}
		if strings.Contains(string(out), "hunter2") {
			t.Errorf("a secret is shown: %s", out)
		}
		return cmd.ProcessState.ExitCode(), string(out), verdicts
	}
	l.eventually("all is well", func() error {
		code, text, verdicts := asks(l.cluster.admin, withAzure...)
		for name, v := range verdicts {
			if !strings.HasPrefix(v, "OK ") {
				return fmt.Errorf("%s: %s\n%s", name, v, text)
			}
		}
		if code != 0 || len(verdicts) < 20 {
			return fmt.Errorf("exit code %d, %d checks", code, len(verdicts))
		}
		return nil
	})
	people := func(flags ...string) string {
		out, _ := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append([]string{"doctor", "--kubeconfig", l.cluster.admin}, flags...)...).CombinedOutput()
		t.Logf("%s", out)
		return string(out)
	}
	if text := people(withAzure...); !strings.HasPrefix(text, "All is well: 43 checks") {
		t.Error(text)
	}
	expects := func(code, want int, verdicts map[string]string, got map[string]string) {
		t.Helper()
		if code != want {
			t.Errorf("exit code %d, want %d", code, want)
		}
		for name, part := range got {
			if !strings.Contains(verdicts[name], part) {
				t.Errorf("%s: %q, want %q", name, verdicts[name], part)
			}
		}
	}

	actions = actions[1:]
	code, _, verdicts := asks(l.cluster.admin, append(withAzure, "--service-account", "weir-system/other")...)
	if text := people(append(withAzure, "--service-account", "weir-system/other")...); !strings.Contains(text, "What helps: kubectl apply --server-side -k config") {
		t.Error(text)
	}
	expects(code, 3, verdicts, map[string]string{
		"actions on rg":                              "FAIL Weir's identity lacks Microsoft.Network/loadBalancers/read",
		"actions on nsg":                             "OK 2 actions",
		"rights weir-controller":                     "FAIL ServiceAccount weir-system/other may not list nodes",
		"rights weir-leader-election in weir-system": "get leases weir-controller in weir-system",
		"rights weir-resource-lease in kube-system":  "OK not given, and needed with useResourceLease alone",
	})
	l.kubectl("create", "serviceaccount", "nobody", "-n", l.namespace)
	none := filepath.Join(l.dir, "nobody")
	l.must(controlplane.WriteKubeconfig(none, l.cluster.rest, "system:serviceaccount:"+l.namespace+":nobody"))
	code, _, verdicts = asks(none)
	expects(code, 0, verdicts, map[string]string{
		"API server": "OK ", "rights weir-controller": "UNKNOWN you may not check", "state": "UNKNOWN you may not", "other controllers": "UNKNOWN you may not",
		"deployment": "UNKNOWN you may not", "secret": "UNKNOWN no Deployment is seen", "lease": "UNKNOWN you may not get Lease weir-system/weir-controller", "admission policies": "UNKNOWN you may not",
	})

	code, _, verdicts = asks(none, "--service-account", l.namespace+"/nobody") // any user may check their own permissions
	expects(code, 3, verdicts, map[string]string{
		"rights weir-controller": "FAIL ServiceAccount " + l.namespace + "/nobody may not list nodes", "definition backendpools.weir.dev": "UNKNOWN you may not",
	})

	// With the right to Weir's Lease alone, as in its pod.
	l.kubectl("create", "rolebinding", l.namespace, "-n", "weir-system", "--role", "weir-leader-election", "--serviceaccount", l.namespace+":nobody")
	code, _, verdicts = asks(none)
	expects(code, 0, verdicts, map[string]string{
		"deployment": "UNKNOWN you may not list Deployments", "lease": "you may not list the Leases of other namespaces", "version": "OK the leader and this program are ",
	})

	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"gone","resourceGruop":"rg","aadClientSecret":"hunter2hunter2"}`)
	code, _, verdicts = asks(l.cluster.admin, "--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", l.url)
	expects(code, 0, verdicts, map[string]string{"azure.json": `WARN keys of azure.json without effect: unknown: "resourceGruop"`, "actions on gone": "UNKNOWN not known: "})
	l.write("azure.json", `{"subscriptionId":"sub"}`)
	code, _, verdicts = asks(l.cluster.admin, withAzure...)
	expects(code, 3, verdicts, map[string]string{"azure.json": `FAIL --config: `})

	silent := filepath.Join(l.dir, "silent")
	text, err := os.ReadFile(l.cluster.admin)
	l.must(err)
	l.must(os.WriteFile(silent, []byte(strings.ReplaceAll(string(text), l.cluster.rest.Host, "https://127.0.0.1:1")), 0o600))
	code, _, verdicts = asks(silent)
	expects(code, 1, verdicts, map[string]string{"API server": "UNKNOWN https://127.0.0.1:1: "})
	if len(verdicts) != 1 {
		t.Errorf("%v", verdicts)
	}
}
