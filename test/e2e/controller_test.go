// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// With only the shipped roles, the controller leads, follows a Service, serves metrics, reports
// what it cannot do, and stops on request.
func TestTheControllerRunsWithTheRolesThatWeShip(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web", "10.9.9.9")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.service("web", n1, n2)
	weir := l.controller("--leader-elect-namespace", "weir-system")

	l.becomes("web", "10.0.0.1", "10.0.0.2", "10.9.9.9")
	l.move("web", n2)
	l.becomes("web", "10.0.0.2", "10.9.9.9")

	l.eventually("weir explain", func() error {
		code, story := l.runCommand("explain", "service", "web")
		for _, want := range []string{"Service " + l.namespace + "/web: ", "InSync for ", "1 are wanted, Azure showed 2, 1 of them not managed by Weir", "10.0.0.2   InPool", "LoadBalancerBackendPoolUpdated"} {
			if code != 0 || !strings.Contains(story, want) {
				return fmt.Errorf("exit code %d, no %q in\n%s", code, want, story)
			}
		}
		return nil
	})
	l.eventually("kubectl get", func() error {
		out, err := l.cluster.kubectl(t.Context(), "-n", l.namespace, "get", "backendpools")
		if err != nil || !strings.Contains(out, "InSync") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	l.eventually("event on the Service", func() error {
		out, err := l.cluster.kubectl(t.Context(), "-n", l.namespace, "get", "events", "--field-selector", "involvedObject.kind=Service,reason=LoadBalancerBackendPoolUpdated")
		if err != nil || !strings.Contains(out, "Load balancer backend pool updated successfully") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	for path, address := range map[string]string{"/healthz": weir.health, "/readyz": weir.health, "/metrics": weir.metrics} {
		body, err := get(address, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if path == "/metrics" && !strings.Contains(body, `weir_arm_calls_total{operation="put",status="200"}`) {
			t.Errorf("%s counts no write:\n%s", path, body)
		}
	}
	calls, err := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), "calls", "--operator-url", "http://"+weir.operator, "--pool", l.namespace+"/web", "--since", "10m").CombinedOutput()
	if err != nil || !regexp.MustCompile(`put +200 .* pool `+l.namespace+`/web\n`).Match(calls) {
		t.Errorf("weir calls: %v:\n%s", err, calls)
	}
	t.Logf("%s", calls)
	spent, err := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), "budget", "--operator-url", "http://"+weir.operator, "-o", "json").Output()
	var budget struct {
		Subscriptions []struct {
			Spent, Share, Left float64
			Requests           []struct {
				Purpose string
				Writes  int
			}
		}
	}
	if err = errors.Join(err, json.Unmarshal(spent, &budget)); err != nil || len(budget.Subscriptions) != 1 {
		t.Fatalf("weir budget: %v:\n%s", err, spent)
	}
	writes := 0
	for _, call := range l.emulator.Calls() {
		if call.Kind == armemu.KindPut {
			writes++
		}
	}
	if s := budget.Subscriptions[0]; s.Spent != float64(writes) || s.Share != 500 || s.Left <= 0 || s.Left > s.Share-s.Spent || len(s.Requests) == 0 || s.Requests[0].Purpose != "backend pools" || s.Requests[0].Writes != writes {
		t.Errorf("weir budget: want %d writes:\n%s", writes, spent)
	}
	if code, text := l.runCommand("status"); code != 0 || !strings.Contains(text, "In sync: 1 BackendPool, 0 Services in namespace ") || !strings.Contains(text, " leads.") {
		t.Errorf("weir status: exit code %d:\n%s", code, text)
	}
	if warned := strings.Count(weir.ReadOutput(), "without effect"); warned != 1 {
		t.Errorf("%d warnings about keys without effect, want one", warned)
	}
	for _, word := range []string{"identitySystem", "resourceGruop"} {
		if !strings.Contains(weir.ReadOutput(), word) {
			t.Errorf("the log does not name the key %s", word)
		}
	}
	for _, trouble := range []string{"forbidden", "panic", "Authorization", "weir-emulator"} {
		if strings.Contains(weir.ReadOutput(), trouble) {
			t.Errorf("the log speaks of %q", trouble)
		}
	}
	// The resource lease is not enabled.
	if err := l.cluster.Get(t.Context(), locker, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
		t.Errorf("the resource lease: %v, want that there is none", err)
	}
	l.must(weir.Signal(syscall.SIGTERM))
	if err := weir.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// Killed during an Azure write and restarted after the cluster changed, it removes what it wrote
// and no longer needs, and keeps foreign members.
func TestKilledInTheMiddleOfABatchItConverges(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{LatencyScale: 0.2, Seed: 7})
	l.pool("web", "10.9.9.9")
	n1, n2, n3 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2"), l.node("n3", "10.0.0.3")
	l.service("web", n1, n2)
	weir := l.controller("--leader-elect=false")
	l.eventually("a write", func() error {
		if len(l.emulator.Calls(armemu.ByKind(armemu.KindPut))) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	weir.Kill()

	l.move("web", n3)
	l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.3", "10.9.9.9")
}

// No other pool is emptied when a Service is deleted while Weir is down.
func TestAServiceThatGoesWhileTheControllerIsAwayIsCleanedUp(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web", "10.9.9.9")
	l.service("web", l.node("n1", "10.0.0.1"))
	weir := l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.1", "10.9.9.9")
	weir.Kill()

	if out, err := l.cluster.kubectl(t.Context(), "-n", l.namespace, "delete", "service", "web"); err != nil {
		t.Fatal(out)
	}
	l.controller("--leader-elect=false")
	l.becomes("web", "10.9.9.9")
}

func TestUsageErrorsExitWith2(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	good := filepath.Join(l.dir, "azure.json")
	tests := []struct {
		name     string
		args     []string
		wantText string
	}{
		{"no such file", []string{"controller", "--config", "/nonexistent/azure.json"}, "/nonexistent/azure.json"},
		{"malformed file", []string{"controller", "--config", l.write("bad.json", `{"subscriptionId": `)}, "bad.json"},
		{"wrong type", []string{"controller", "--config", l.write("type.json", `{"subscriptionId":"s","resourceGroup":7}`)}, "resourceGroup"},
		{"missing key", []string{"controller", "--config", l.write("half.json", `{"subscriptionId":"s"}`)}, "resourceGroup"},
		{"static token elsewhere", []string{"controller", "--config", good, "--kubeconfig", l.cluster.weir, "--azure-endpoint", "http://10.0.0.1:80"}, "loopback"},
		{"identity", []string{"controller", "--config", good, "--kubeconfig", l.cluster.weir}, "useManagedIdentityExtension"},
		{"kubeconfig", []string{"controller", "--config", good, "--azure-endpoint", l.url, "--kubeconfig", "/nonexistent/kc"}, "/nonexistent/kc"},
		{"address", []string{"controller", "--config", good, "--metrics-bind-address", "8080"}, "--metrics-bind-address"},
		{"metrics for everybody", []string{"controller", "--config", good, "--metrics-bind-address", ":0"}, "add --metrics-secure"},
		{"flag", []string{"controller", "--no-such-flag"}, "--no-such-flag"},
		{"command", []string{"contoller"}, `"contoller"`},
		{"log format", []string{"controller", "--log-format", "xml"}, `"xml"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			of, err := process.RunToEnd(t.Context(), nil, filepath.Join(bin, "weir"), tt.args...)
			if err != nil || of.Code != 2 {
				t.Errorf("ended with %d, %v, want exit code 2", of.Code, err)
			}
			line := strings.TrimSpace(of.Stderr)
			if !strings.HasPrefix(line, "weir: ") || strings.Contains(line, "\n") || !strings.Contains(line, tt.wantText) {
				t.Errorf("said %q, want one line that names %s", line, tt.wantText)
			}
		})
	}
}
