// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
)

// runPlan runs weir plan with the controller's permissions and returns output and exit code.
func (l *lab) runPlan(args ...string) (string, int) {
	l.t.Helper()
	of, err := process.RunToEnd(l.t.Context(), nil, filepath.Join(bin, "weir"), append([]string{
		"plan", "--kubeconfig", l.cluster.weir, "--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", l.url,
		"--cluster-name", l.namespace, "-n", l.namespace,
	}, args...)...)
	l.must(err)
	if of.Code == 1 {
		l.t.Fatalf("weir plan fails: %s", of.Stderr)
	}
	return of.Stdout, of.Code
}

// The plan lists what the controller then does, and is empty afterwards. A dry run changes nothing,
// reports the changes, and applies them when it ends.
func TestAPlanAndADryRun(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.createLoadBalancerService("web", nil, n1)
	if out, code := l.runPlan(); code != 2 || !strings.Contains(out, "+ load balancer "+l.namespace) || !strings.Contains(out, "+ 10.0.0.1 "+n1) || !strings.Contains(out, "2 resources to add") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	l.controller("--leader-elect-namespace", "weir-system", "--cluster-name", l.namespace)
	l.ingress("web", 1)
	own := l.namespace + "-web"
	l.becomes(own, "10.0.0.1")
	l.eventually("plan", func() error {
		if out, code := l.runPlan(); code != 0 || !strings.Contains(out, "No changes (1 Service).") {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})

	l.edit("web", func(s *corev1.Service) { s.Annotations["weir.dev/dry-run"] = "true" })
	l.expectPlan("nothing would change in Azure")
	l.move("web", n2)
	l.edit("web", func(s *corev1.Service) {
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"] = "9"
	})
	l.expectPlan("~ rule a", "~ pool "+own+": +1 -1 of its members")
	l.becomes(own, "10.0.0.1")
	if out, code := l.runPlan(); code != 0 || !strings.Contains(out, "weir.dev/dry-run is set") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if out, code := l.runPlan("web"); code != 2 || !strings.Contains(out, "idleMinutes: 4 → 9") || !strings.Contains(out, "+ 10.0.0.2 "+n2) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	l.edit("web", func(s *corev1.Service) { delete(s.Annotations, "weir.dev/dry-run") })
	l.becomes(own, "10.0.0.2")
	l.eventually("plan", func() error {
		if out, code := l.runPlan("web"); code != 0 {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})

	// Later tests run a controller for all Services.
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: l.namespace}}
	l.must(l.cluster.Delete(t.Context(), web))
	l.eventually("end of Service web", func() error {
		if err := l.cluster.Get(t.Context(), key(l.namespace, "web"), web); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// expectPlan waits until the Service's BackendPool reports these parts.
func (l *lab) expectPlan(parts ...string) {
	l.t.Helper()
	l.eventually("condition DryRun", func() error {
		var p v1alpha1.BackendPool
		if err := l.cluster.Get(l.t.Context(), key(l.namespace, "web."+l.namespace), &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDryRun)
		for _, part := range parts {
			if c == nil || !strings.Contains(c.Message, part) {
				return fmt.Errorf("says %v, want %q", c, part)
			}
		}
		return nil
	})
}
