// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/badlink"
)

// newSilentTarget makes Secret edge the kubeconfig of a target that accepts TLS connections and
// requests but never answers. It counts the requests.
func (p *provisioning) newSilentTarget() *atomic.Int64 {
	p.t.Helper()
	requests, over := &atomic.Int64{}, make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	listener, err := badlink.NewListener(p.t.Context())
	p.must(err)
	p.must(server.Listener.Close())
	server.Listener = listener
	server.StartTLS()
	p.t.Cleanup(server.Close)
	p.t.Cleanup(func() { close(over) })
	config := clientcmdapi.NewConfig()
	config.Clusters["far"] = &clientcmdapi.Cluster{
		Server: server.URL, TLSServerName: "127.0.0.1", CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	config.AuthInfos["far"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["far"] = &clientcmdapi.Context{Cluster: "far", AuthInfo: "far", Namespace: "default"}
	config.CurrentContext = "far"
	text, err := clientcmd.Write(*config)
	p.must(err)
	p.must(p.cluster.Create(p.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "edge"}, Data: map[string][]byte{"kubeconfig": text}}))
	return requests
}

func (l *lab) lease(name string) coordinationv1.LeaseSpec {
	l.t.Helper()
	var lease coordinationv1.Lease
	l.must(l.cluster.Get(l.t.Context(), key("weir-system", name), &lease))
	return lease.Spec
}

// A provisioner that hangs on its target, or is OOM-killed, does not affect load balancers:
// endpoint changes reach Azure, and the controller's process and Lease are unchanged. The next
// provisioner continues the attempt.
func TestTheProvisionerDoesNotAffectLoadBalancers(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	requests := p.newSilentTarget()
	p.pool("web")
	n1, n2 := p.node("n1", "10.0.0.1"), p.node("n2", "10.0.0.2")
	p.service("web", n1)
	controller := p.controller()
	p.becomes("web", "10.0.0.1")
	before := p.lease("weir-controller")

	first := p.provisioner()
	p.applyFile(`
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: stuck}
spec:
  target: {kubeconfigSecret: {name: edge}}
  steps: [{name: never, wait: {apiVersion: v1, kind: ConfigMap, name: go}}]
`)
	isStuck := func(after int64) {
		t.Helper()
		p.eventually("the target gets a request", func() error {
			if requests.Load() == after {
				return errors.New("it gets none")
			}
			return nil
		})
		if status := p.waitState("stuck", v1alpha1.ProvisionRunning, 1); status.AttemptNumber != 1 {
			t.Errorf("%d attempts were begun", status.AttemptNumber)
		}
	}
	isStuck(0)
	if p.weir("list"); p.notes != "" {
		t.Errorf("a provisioner runs, and weir provision list reports %q", p.notes)
	}
	p.move("web", n2)
	p.becomes("web", "10.0.0.2")

	first.Kill()
	p.move("web", n1)
	p.becomes("web", "10.0.0.1")

	p.eventually("commands report that no provisioner runs", func() error {
		p.weir("list")
		code, status := p.runCommand("status")
		if want := "no process of weir-provisioner has led since "; !strings.Contains(p.notes, want) || code != 3 || !strings.Contains(status, "NoProvisioner: 1 Provision in progress; "+want) {
			return fmt.Errorf("weir provision list: %q; weir status: exit code %d, %s", p.notes, code, status)
		}
		return nil
	})

	seen := requests.Load()
	p.provisioner()
	isStuck(seen)
	p.move("web", n1, n2)
	p.becomes("web", "10.0.0.1", "10.0.0.2")

	select {
	case <-controller.Done():
		t.Error("the controller has ended")
	default:
	}
	if now := p.lease("weir-controller"); *now.HolderIdentity != *before.HolderIdentity || *now.LeaseTransitions != *before.LeaseTransitions {
		t.Errorf("the controller's Lease was that of %s, and is that of %s", *before.HolderIdentity, *now.HolderIdentity)
	}
	if *p.lease(k8s.ProvisionerLease).HolderIdentity == *before.HolderIdentity {
		t.Error("both programs have the same Lease")
	}
}

// hasPermission queries the API server for a permission of a ServiceAccount in weir-system.
func (p *provisioning) hasPermission(account, verb, group, resource, namespace string) bool {
	p.t.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	name := ""
	if resource == "leases" {
		name, sub = sub, ""
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:weir-system:" + account, Groups: []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name},
	}}
	p.must(p.cluster.Create(p.t.Context(), review))
	return review.Status.Allowed
}

// Neither program has permissions that only the other one needs, with both installed and the
// attempts' role bound in a namespace.
func TestRightsOfTheProvisionerAndTheController(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	for _, of := range []struct{ account, group, resource, namespace string }{
		{"weir", "weir.dev", "provisions", ""}, {"weir", "weir.dev", "provisions", p.namespace}, {"weir", "weir.dev", "provisions/status", p.namespace},
		{"weir", "weir.dev", "partners", ""}, {"weir", "weir.dev", "provisioningpolicies", ""},
		{"weir", "", "secrets", p.namespace}, {"weir", "", "configmaps", p.namespace}, {"weir", "", "serviceaccounts/token", p.namespace},
		{"weir", "coordination.k8s.io", "leases/weir-provisioner", "weir-system"},
		{"weir-provisioner", "", "services", ""}, {"weir-provisioner", "", "services/status", ""}, {"weir-provisioner", "", "nodes", ""},
		{"weir-provisioner", "discovery.k8s.io", "endpointslices", ""}, {"weir-provisioner", "weir.dev", "backendpools", ""},
		{"weir-provisioner", "weir.dev", "backendpools/status", ""}, {"weir-provisioner", "", "secrets", "weir-system"},
		{"weir-provisioner", "", "configmaps", "weir-system"}, {"weir-provisioner", "", "secrets", "default"},
		{"weir-provisioner", "coordination.k8s.io", "leases/weir-controller", "weir-system"},
	} {
		for _, verb := range verbs {
			if verb == "create" && of.group == "coordination.k8s.io" { // RBAC cannot restrict it to a name
				continue
			}
			if p.hasPermission(of.account, verb, of.group, of.resource, of.namespace) {
				t.Errorf("%s may %s %s in %q", of.account, verb, of.resource, of.namespace)
			}
		}
	}
	if !p.hasPermission("weir-provisioner", "get", "", "secrets", p.namespace) || !p.hasPermission("weir", "list", "", "services", "") {
		t.Error("the rights that each needs are not found")
	}
}

// The provisioner serves metrics to authorized clients only, with a version that differs from the
// controller's.
func TestMetricsOfTheProvisioner(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	program := p.provisioner("--leader-elect=false", "--metrics-secure")
	p.eventually("an answer", func() error {
		res, err := insecure.Get("https://" + program.metrics + "/metrics")
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("without a token: %s", res.Status)
		}
		return nil
	})
	token := p.reader()
	p.eventually("the series of Provisions", func() error {
		return checkSeries(insecure, program.metrics, token, "\nweir_provisioner_build_info{", "\nweir_provision_oldest_seconds ", "\nweir_provision_attempts_total{")
	})
	if err := checkSeries(insecure, program.metrics, token, "\nweir_build_info{"); err == nil {
		t.Error("it exports weir_build_info: WeirDown would not fire without the controller")
	}
	if text, err := get(program.health, "/readyz"); err != nil {
		t.Errorf("readyz: %s, %v", text, err)
	}
}

// Without CRDs or roles, or with invalid flags, the provisioner exits with a remedy.
func TestProvisionerReportsMissingPermissions(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	for name, of := range map[string]struct {
		flags    []string
		code     int
		wantText string
	}{
		"no role":         {nil, 1, "apply config/crd and config/provisioning"},
		"no kubeconfig":   {[]string{"--kubeconfig", "/nowhere"}, 2, `--kubeconfig "/nowhere"`},
		"open metrics":    {[]string{"--metrics-bind-address", ":8443"}, 2, "add --metrics-secure"},
		"no address":      {[]string{"--health-probe-bind-address", "8081"}, 2, `--health-probe-bind-address "8081": want host:port`},
		"no election":     {[]string{"--leader-elect-retry-period", "0s"}, 2, "--leader-elect-retry-period 0s: want more than 0"},
		"no flag of it":   {[]string{"--config", "azure.json"}, 2, "unknown flag: --config: run weir-provisioner --help"},
		"another command": {[]string{"controller"}, 2, `weir-provisioner has no arguments, got "controller"`},
		"no log format":   {[]string{"--log-format", "xml"}, 2, `log format "xml"`},
	} {
		p := l.provisioner(append([]string{"--leader-elect=false"}, of.flags...)...)
		<-p.Done()
		if out := p.ReadOutput(); p.ExitCode() != of.code || !strings.Contains(out, of.wantText) {
			t.Errorf("%s: exit code %d, want %d:\n%s\nwant %q", name, p.ExitCode(), of.code, out, of.wantText)
		}
	}
}
