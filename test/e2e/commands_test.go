// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
)

// kubectl's connection flags work on commands, and shells complete names, namespaces and values.
func TestConnectionFlagsAndCompletion(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.kubectl("create", "serviceaccount", "reader", "-n", l.namespace)
	l.pool("web")
	node := l.node("n1", "10.0.0.1")
	l.service("web", node)
	l.createLoadBalancerService("shop", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("other.example/class") })
	shop := l.serviceOf("shop") // its controller has served it
	shop.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	l.must(l.cluster.Status().Update(t.Context(), shop))
	run := func(args ...string) (code int, text string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append(args, "--kubeconfig", l.cluster.admin)...)
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	reader := "system:serviceaccount:" + l.namespace + ":reader"
	for _, tt := range []struct {
		args     []string
		code     int
		wantText string
	}{
		{[]string{"status", "-A", "--context", "lab"}, 0, "BackendPool"},
		{[]string{"status", "-A", "--context", "nosuch"}, 2, `context "nosuch" does not exist`},
		{[]string{"status", "-A", "--as", reader}, 1, `User "` + reader + `" cannot list resource "backendpools"`},
		{[]string{"explain", "service", "web", "-n", l.namespace, "--as", reader}, 1, "cannot get resource"},
		{[]string{"explain", "service/nosuch", "-n", l.namespace}, 1, `there is no Service "nosuch" in namespace ` + l.namespace},
		{[]string{"explain", "bp/nosuch", "-n", l.namespace}, 1, "kubectl get backendpools -A"},
		{[]string{"explain", "node/nosuch"}, 1, "kubectl get nodes lists them"},
		{[]string{"explain", "service/web", "-n", l.namespace}, 0, "Service " + l.namespace + "/web"},
		{[]string{"retry", "service/nosuch", "-n", l.namespace}, 1, `there is no Service "nosuch" in namespace ` + l.namespace},
		{[]string{"status", "-n", "nosuch"}, 1, `there is no namespace "nosuch"`},
		{[]string{"status", "-n", l.namespace}, 0, " in namespace " + l.namespace},
		{[]string{"plan", "--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", l.url, "--as", reader}, 1, "forbidden"},
		{[]string{"provision", "list", "-n", l.namespace, "--as", reader}, 1, "forbidden"},
		{[]string{"provision", "list", "-n", l.namespace, "-o", "text"}, 0, ""},
		{[]string{"leave", "--dry-run", "--as", reader}, 1, "forbidden"},
		{[]string{"calls", "--as", reader}, 1, "may not get Lease"},
		{[]string{"budget", "--as", reader}, 1, "may not get Lease"},
		{[]string{"doctor", "--server", "https://127.0.0.1:1"}, 1, "https://127.0.0.1:1"},
		{[]string{"doctor", "--request-timeout", "1ms"}, 1, "UNKNOWN   API server\n"},
		{[]string{"version", "--as", reader}, 0, "Controller: not known: you may not read the Lease"},
	} {
		if code, text := run(tt.args...); code != tt.code || !strings.Contains(text, tt.wantText) {
			t.Errorf("weir %v: exit code %d, no %q in\n%s", tt.args, code, tt.wantText, text)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "service", "-n", l.namespace, ""}, "shop web"},
		{[]string{"explain", "svc", "-n", l.namespace, "w"}, "web"},
		{[]string{"explain", "pool", "-n", l.namespace, ""}, "web"},
		{[]string{"explain", "node", l.namespace}, node},
		{[]string{"retry", "-n", l.namespace, ""}, "web service/shop service/web"},
		{[]string{"pause", "-n", l.namespace, "web", ""}, "service/shop service/web"},
		{[]string{"status", "-n", l.namespace}, l.namespace},
		{[]string{"status", "--context", ""}, "lab"},
		{[]string{"status", "-o", ""}, "text json"},
		{[]string{"calls", "--service", l.namespace}, l.namespace + "/shop " + l.namespace + "/web"},
		{[]string{"doctor", "--service-account", l.namespace}, l.namespace + "/reader"},
		{[]string{"plan", "-n", l.namespace, "w"}, "web"},
	} {
		last := len(tt.args) - 1
		l.eventually("weir completes "+strings.Join(tt.args, " "), func() error { // completion has a short timeout
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append(append([]string{"__completeNoDesc", tt.args[0], "--kubeconfig", l.cluster.admin}, tt.args[1:last]...), tt.args[last])...)
			out, err := cmd.Output()
			lines := strings.Fields(string(out))
			if err != nil || len(lines) == 0 || lines[len(lines)-1] != ":4" || strings.Join(matching(lines[:len(lines)-1], tt.args[last]), " ") != tt.want {
				return fmt.Errorf("%s, %w; want %s", out, err, tt.want)
			}
			return nil
		})
	}
	l.controller()
	l.eventually("the version of the controller", func() error {
		_, text := run("version", "-o", "json")
		var v struct {
			Client     string
			Controller struct{ Version, Leader, Namespace string }
		}
		l.must(json.Unmarshal([]byte(text), &v))
		if v.Client == "" || v.Controller.Version != v.Client || v.Controller.Leader == "" || v.Controller.Namespace != "weir-system" {
			return errors.New(text)
		}
		return nil
	})
}

// matching returns the words with a prefix, as a shell shows them.
func matching(words []string, prefix string) (names []string) {
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			names = append(names, w)
		}
	}
	return names
}
