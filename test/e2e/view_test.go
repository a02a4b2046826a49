// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
)

// With the role view in a namespace only, weir explain and weir status show that namespace and
// nothing else.
func TestViewerOfNamespaceSeesReasons(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.kubectl("create", "serviceaccount", "reader", "-n", l.namespace)
	for _, role := range []string{"system:aggregate-to-view", "weir-view"} { // no aggregation controller runs here
		l.kubectl("create", "rolebinding", strings.TrimPrefix(role, "system:"), "-n", l.namespace, "--clusterrole", role, "--serviceaccount", l.namespace+":reader")
	}
	l.pool("web")
	l.service("web", l.node("n1", "10.0.0.1"))
	l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.1")

	reader := filepath.Join(l.dir, "reader")
	l.must(controlplane.WriteKubeconfig(reader, l.cluster.rest, "system:serviceaccount:"+l.namespace+":reader"))
	asks := func(command ...string) string {
		out, _ := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append(command, "--kubeconfig", reader)...).CombinedOutput()
		return string(out)
	}
	l.eventually("weir explain", func() error {
		if text := asks("explain", "service", "web", "-n", l.namespace); !strings.Contains(text, "10.0.0.1   InPool") || !strings.Contains(text, "You may not list Nodes") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	if text := asks("status", "-n", l.namespace); !strings.Contains(text, "1 BackendPool") || !strings.Contains(text, "The leader is unknown") {
		t.Errorf("weir status: %s", text)
	}
	if text := asks("status", "-A"); !strings.Contains(text, "forbidden") {
		t.Errorf("weir status of all namespaces: %s", text)
	}
}
