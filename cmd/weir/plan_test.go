// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// Exit codes of weir plan. A usage error is not 2, which means changes.
func TestExitCodes(t *testing.T) {
	const app = "../../internal/app/testdata/"
	emu := patient.Watch(t, armemu.New(armemu.Options{}))
	resources, err := os.ReadFile(app + "adoption/resources.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := emu.Restore(resources); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	defer server.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	silent := "http://" + listener.Addr().String()
	adopted := []string{"plan", "--azure-endpoint", server.URL, "--config", app + "adoption/azure.json", "-f", app + "adoption/services.yaml"}
	refused := filepath.Join(t.TempDir(), "refused.yaml")
	if err := os.WriteFile(refused, []byte(`{apiVersion: v1, kind: Service, metadata: {name: bad, annotations: {service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout: ten}},
		spec: {type: LoadBalancer, loadBalancerClass: weir.dev/azure, ports: [{port: 80}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	shop := []string{"plan", "--azure-endpoint", server.URL, "--config", app + "plan/azure.json", "-f", app + "plan/shop.yaml"}
	given, elsewhere := filepath.Join(t.TempDir(), "served.yaml"), filepath.Join(t.TempDir(), "azure.json")
	for path, edit := range map[string]struct{ of, before, current string }{
		given:     {"services.yaml", "  finalizers:\n", "  finalizers:\n  - weir.dev/azure-load-balancer\n"},
		elsewhere: {"azure.json", `"resourceGroup": "rg"`, `"resourceGroup": "elsewhere", "loadBalancerResourceGroup": "rg"`},
	} {
		text, err := os.ReadFile(app + "adoption/" + edit.of)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), edit.before, edit.current)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"a Service is refused, which is no failure", append(shop, "-n", "default", "-f", refused), 0},
		{"a Service is refused, which is one", append(shop, "-n", "default", "--fail-on-refused", "-f", refused), 4},
		{"another one changes something as well", append(shop, "--fail-on-refused", "-f", refused), 4},
		{"none is refused", append(adopted, "--load-balancer-class=", "--fail-on-refused"), 0},
		{"an API server checks files alone", append(adopted[:len(adopted)-2:len(adopted)-2], "--server-dry-run"), 1},
		{"addresses are lost", []string{"plan", "--azure-endpoint", server.URL, "--config", elsewhere, "-f", given, "--load-balancer-class="}, 3},
		{"nothing changes", append(adopted, "--load-balancer-class="), 0},
		{"nothing changes, for machines", append(adopted, "--load-balancer-class=", "-o", "json"), 0},
		{"one Service, of which nothing changes", append(adopted, "--load-balancer-class=", "-n", "shop", "local"), 0},
		{"something changes", []string{"plan", "--azure-endpoint", server.URL, "--config", app + "plan/azure.json", "-f", app + "plan/shop.yaml"}, 2},
		{"no such Service", append(adopted, "nobody"), 1},
		{"two Services", append(adopted, "a", "b"), 1},
		{"no patience", append(adopted, "--timeout", "0s"), 1},
		{"Azure does not answer", []string{"plan", "--timeout", "100ms", "--azure-endpoint", silent, "--config", app + "plan/azure.json", "-f", app + "plan/shop.yaml"}, 1},
		{"no such output", append(adopted, "-o", "xml"), 1},
		{"no such flag", append(adopted, "--nonsense"), 1},
		{"no such file", append(adopted, "-f", "/nonexistent"), 1},
		{"no such flag of another command", []string{"version", "--nonsense"}, 2},
		{"an argument too many", []string{"version", "--", "nonsense"}, 2},
		{"no such command", []string{"paln"}, 2},
		{"the version", []string{"--version"}, 0},
		{"help", []string{"plan", "--help"}, 0},
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	if os.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		if got := run(tt.args); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Control characters from a file are removed from error messages.
func TestMessagesSteerNoTerminal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "evil.yaml")
	evil := `{apiVersion: v1, kind: Service, metadata: {name: "x\e[2J\u009b2J\u202e"}, spec: {ports: 1}}`
	if err := os.WriteFile(name, []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = write
	run([]string{"plan", "--config", "../../internal/app/testdata/plan/azure.json", "--azure-endpoint", "http://127.0.0.1:1", "-f", name})
	write.Close()
	output, err := io.ReadAll(read)
	if text := string(output); err != nil || !strings.Contains(text, "Service default/x") && !strings.Contains(text, "Service x") || strings.ContainsAny(text, "\x1b\u009b\u202e") {
		t.Errorf("it says %q, %v", text, err)
	}
}
