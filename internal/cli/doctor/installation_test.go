// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/config"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/k8s/metadata"
)

// shippedAdmission returns the policy and the binding of config/admission.
func shippedAdmission(t *testing.T) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	content, err := config.Admission.ReadFile("admission/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(content), "\n---\n")
	p, b := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := errors.Join(yaml.Unmarshal([]byte(documents[0]), p), yaml.Unmarshal([]byte(documents[1]), b)); err != nil {
		t.Fatal(err)
	}
	return p, b
}

// The policy counts only if it is bound with Deny and exempts Weir.
func TestAdmissionPolicies(t *testing.T) {
	for _, tt := range []struct {
		about   string
		edit    func(*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object
		account string
		want    Result
		reason  string
	}{
		{"well", func(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object {
			return []client.Object{p, b}
		}, "weir", OK, "in force: weir-backendpools"},
		{"none", func(*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object {
			return nil
		}, "weir", Warn, "weir-backendpools is not there"},
		{"not bound", func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object {
			return []client.Object{p}
		}, "weir", Warn, "has no binding with the action Deny"},
		{"only a warning", func(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			return []client.Object{p, b}
		}, "weir", Warn, "has no binding with the action Deny"},
		{"another account", func(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object {
			return []client.Object{p, b}
		}, "other", Warn, "does not exempt system:serviceaccount:weir-system:other"},
		{"an expression that does not fit", func(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []client.Object {
			p.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: []admissionregistrationv1.ExpressionWarning{{FieldRef: "spec.validations[0]", Warning: "undefined field"}}}
			return []client.Object{p, b}
		}, "weir", Warn, "spec.validations[0]: undefined field"},
	} {
		scheme := metadata.Scheme()
		if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		d := Doctor{API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.edit(shippedAdmission(t))...).Build(), Namespace: "weir-system", ServiceAccount: tt.account}
		got := d.checkAdmission(t.Context())
		if len(got) != 1 || got[0].Result != tt.want || !strings.Contains(got[0].Why, tt.reason) || (got[0].Fix == "") != (tt.want == OK) {
			t.Errorf("%s: %+v", tt.about, got)
		}
	}
}

// The Lease, its age, and the version of the leader.
func TestTheLeadersLease(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	holds := status.Leader{Known: true, Holder: "weir-0", Namespace: "weir-system", Renewed: now.Add(-3 * time.Second), Version: app.Version}
	change := func(edit func(*status.Leader)) status.Leader {
		l := holds
		edit(&l)
		return l
	}
	deployed := func(flags ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: append([]string{"controller"}, flags...)}}
		return d
	}
	for _, tt := range []struct {
		about             string
		l                 status.Leader
		all               bool
		d                 *appsv1.Deployment
		lease, reason     string
		version, wantText string
	}{
		{"well", holds, true, deployed(), "OK", "weir-0 leads by Lease weir-system/weir-controller, renewed 3s ago", "OK", "are " + app.Version},
		{"others are not seen", holds, false, deployed(), "OK", "you may not list the Leases of other namespaces", "OK", ""},
		{"it is not seen", status.Leader{}, false, deployed(), "UNKNOWN", "you may not get Lease weir-system/weir-controller", "UNKNOWN", "no process leads"},
		{"none", status.Leader{Known: true}, true, deployed(), "FAIL", "there is no Lease weir-controller in any namespace", "UNKNOWN", ""},
		{"none is needed", status.Leader{Known: true}, true, deployed("--leader-elect=false"), "OK", "none is needed", "UNKNOWN", ""},
		{"run out", change(func(l *status.Leader) { l.Holder, l.Last, l.Renewed = "", "weir-0", now.Add(-time.Hour) }), true, deployed(), "FAIL", "weir-0 has not renewed Lease weir-system/weir-controller for 60m", "UNKNOWN", ""},
		{"released", change(func(l *status.Leader) { l.Holder = "" }), true, deployed(), "FAIL", "has released Lease weir-system/weir-controller 3s ago", "UNKNOWN", ""},
		{"two", change(func(l *status.Leader) {
			l.Rivals = []status.Leader{{Holder: "other-0", Namespace: "kube-system"}}
		}), true, deployed(), "FAIL", "two Weirs write at once", "OK", ""},
		{"another version", change(func(l *status.Leader) { l.Version = "v0.1" }), true, deployed(), "OK", "", "WARN", "the leader is v0.1 and this program " + app.Version},
		{"no version", change(func(l *status.Leader) { l.Version = "" }), true, deployed(), "OK", "", "UNKNOWN", "older than this program"},
	} {
		i := &installed{Doctor: Doctor{Namespace: "weir-system"}, leader: tt.l, allLeases: tt.all, installation: status.Installation{Known: true, Deployment: tt.d}}
		if got := i.checkLease(t.Context(), now)[0]; string(got.Result) != tt.lease || !strings.Contains(got.Why, tt.reason) || got.Result == Fail && got.Fix == "" {
			t.Errorf("%s: %+v", tt.about, got)
		}
		if got := i.checkVersion()[0]; string(got.Result) != tt.version || !strings.Contains(got.Why, tt.wantText) {
			t.Errorf("%s: %+v", tt.about, got)
		}
	}
}
