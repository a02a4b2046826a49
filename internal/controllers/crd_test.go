// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

func TestRulesOfTheCRD(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	service := &v1alpha1.ServiceReference{Name: "web"}
	nodes := &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{}}
	for _, tt := range []struct {
		name, want string
		change     func(*v1alpha1.BackendPoolSpec)
	}{
		{"both sources", "exactly one of serviceRef and nodes", func(p *v1alpha1.BackendPoolSpec) { p.Nodes = nodes }},
		{"no source", "exactly one of serviceRef and nodes", func(p *v1alpha1.BackendPoolSpec) { p.ServiceRef = nil }},
		{"no pool name", "spec.poolName", func(p *v1alpha1.BackendPoolSpec) { p.PoolName = "" }},
		{"pool name leaves the path", "spec.poolName", func(p *v1alpha1.BackendPoolSpec) { p.PoolName = "../../x" }},
		{"load balancer leaves the path", "spec.loadBalancer.name", func(p *v1alpha1.BackendPoolSpec) { p.LoadBalancer.Name = "a/b" }},
		{"resource group ends in a full stop", "spec.loadBalancer.resourceGroup", func(p *v1alpha1.BackendPoolSpec) { p.LoadBalancer.ResourceGroup = "rg." }},
		{"subscription with a query", "spec.loadBalancer.subscriptionID", func(p *v1alpha1.BackendPoolSpec) { p.LoadBalancer.SubscriptionID = "s?x=1" }},
		{"an end of no pause", "remove spec.pause together with spec.paused", func(p *v1alpha1.BackendPoolSpec) { p.Pause = &v1alpha1.Pause{Until: new(metav1.Now())} }},
		{"a reason as long as a book", "spec.pause.why", func(p *v1alpha1.BackendPoolSpec) {
			p.Paused, p.Pause = true, &v1alpha1.Pause{Why: strings.Repeat("x", 257)}
		}},
		{"unknown family", "Unsupported value", func(p *v1alpha1.BackendPoolSpec) { p.IPFamily = "ipv4" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "refused"}}
			p.Spec = v1alpha1.BackendPoolSpec{ServiceRef: service, PoolName: "web", LoadBalancer: v1alpha1.LoadBalancerReference{Name: s.ns}}
			tt.change(&p.Spec)
			if err := api.Create(s.Context(), p); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}

	s.createBackendPool("web", "web", func(p *v1alpha1.BackendPoolSpec) { p.Paused = true })
	if got := get[v1alpha1.BackendPool](s, s.ns, "web").Spec.IPFamily; got != "IPv4" {
		t.Errorf("family %q by default, want IPv4", got)
	}
	for _, change := range []func(*v1alpha1.BackendPoolSpec){
		func(p *v1alpha1.BackendPoolSpec) { p.PoolName = "other" },
		func(p *v1alpha1.BackendPoolSpec) { p.LoadBalancer.ResourceGroup = "other" },
		func(p *v1alpha1.BackendPoolSpec) { p.IPFamily = "IPv6" },
	} {
		p := get[v1alpha1.BackendPool](s, s.ns, "web")
		before := p.DeepCopy()
		change(&p.Spec)
		if err := api.Patch(t.Context(), p, client.MergeFrom(before)); err == nil || !strings.Contains(err.Error(), "cannot change: delete this BackendPool") {
			t.Errorf("got %v, want a refusal that names the way out", err)
		}
	}
}

// The membership type can change only until the pool is taken.
func TestMembershipStays(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	s.createBackendPool("web", "web", func(p *v1alpha1.BackendPoolSpec) { p.Paused = true })
	asks := func(membership string) error {
		p := get[v1alpha1.BackendPool](s, s.ns, "web")
		before := p.DeepCopy()
		p.Spec.Membership = membership
		return api.Patch(t.Context(), p, client.MergeFrom(before))
	}
	if err := asks(v1alpha1.MembershipNetworkInterface); err != nil {
		t.Errorf("nothing was taken yet: %v", err)
	}
	if err := asks("PodIP"); err == nil || !strings.Contains(err.Error(), "Unsupported value") {
		t.Errorf("got %v", err)
	}
	s.waitUntil(func() string { // the controller writes it, too
		p := get[v1alpha1.BackendPool](s, s.ns, "web")
		before := p.DeepCopy()
		p.Status.PoolID = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/lb/backendAddressPools/web"
		if err := api.Status().Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, membership := range []string{v1alpha1.MembershipAddress, v1alpha1.MembershipAuto, ""} {
		if err := asks(membership); err == nil || !strings.Contains(err.Error(), "cannot change once the pool was taken: delete this BackendPool") {
			t.Errorf("%q: got %v, want a refusal that names the way out", membership, err)
		}
	}
	if err := asks(v1alpha1.MembershipNetworkInterface); err != nil {
		t.Errorf("as it is: %v", err)
	}
}

// The printed columns. Run with UPDATE=1 to update testdata/columns.txt.
func TestColumns(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web", "shared")
	s.createNode(1)
	s.createNode(2)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2))
	s.azurePool("web", s.ip(200)) // foreign
	s.createBackendPool("web", "web")
	s.createBackendPool("shared", "", func(p *v1alpha1.BackendPoolSpec) {
		p.ServiceRef = nil
		p.Nodes = &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": s.ns}}}
	})
	s.waitForMembers("web", s.ip(1), s.ip(2), s.ip(200))
	s.waitForMembers("shared")
	// Last, so that it does not wait behind other pools.
	s.createBackendPool("missing", "web", func(p *v1alpha1.BackendPoolSpec) { p.PoolName = "nowhere" })
	s.waitForReason("missing", v1alpha1.ReasonPoolNotFound, "")
	got := kubectl(t, "get", "bp", "-n", s.ns) + "\n" + kubectl(t, "get", "backendpools", "-n", s.ns, "-o", "wide")
	got = strings.ReplaceAll(got, s.ns, "scene-NNN")
	got = regexp.MustCompile(`(?m)  +\d+s( +|$)`).ReplaceAllStringFunc(got, func(age string) string {
		digits := strings.TrimSpace(age)
		return strings.Replace(age, digits, "Ns"+strings.Repeat(" ", len(digits)-2), 1)
	})
	got = regexp.MustCompile(`(?m) +$`).ReplaceAllString(got, "")
	golden := filepath.Join("testdata", "columns.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the project
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), cluster.ControlPlane.KubectlPath, append(args, "--kubeconfig", kubeconfig)...) //nolint:gosec // the test's own arguments
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}
