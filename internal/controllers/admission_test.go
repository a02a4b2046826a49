// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/service"
)

const policyLabel = "example.com/policy"

func installPolicy(t *testing.T, name, subscriptionID, resourceGroup string) {
	t.Helper()
	shipped, err := os.ReadFile("../../config/admission/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(shipped), "weir-backendpools", name)
	for variable, value := range map[string]string{"subscription": subscriptionID, "resourceGroup": resourceGroup} {
		empty := "    - name: " + variable + "\n      expression: \"''\"\n"
		if strings.Count(text, empty) != 1 {
			t.Fatalf("no variable %s", variable)
		}
		text = strings.Replace(text, empty, strings.Replace(empty, "''", "'"+value+"'", 1), 1)
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if obj.GetKind() == "ValidatingAdmissionPolicyBinding" {
			_ = unstructured.SetNestedStringMap(obj.Object, map[string]string{policyLabel: name}, "spec", "matchResources", "namespaceSelector", "matchLabels")
		}
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func isAdmitted(t *testing.T, namespace, policy, list, balancer string) bool {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{policyLabel: policy}, Annotations: map[string]string{service.LoadBalancersAnnotation: list}}}
	if err := api.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	part := strings.Split(balancer, "/")
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}, LoadBalancer: v1alpha1.LoadBalancerReference{Name: part[len(part)-1]}, PoolName: "web"},
	}
	if len(part) > 1 {
		p.Spec.LoadBalancer.ResourceGroup = part[len(part)-2]
	}
	if len(part) > 2 {
		p.Spec.LoadBalancer.SubscriptionID = part[0]
	}
	err := api.Create(t.Context(), p, client.DryRunAll)
	if err != nil && !strings.Contains(err.Error(), "may not bind pools of load balancer "+p.Spec.LoadBalancer.Name) {
		t.Fatal(err)
	}
	return err == nil
}

// The policy in config/admission agrees with internal/service. Without azure.json values it rejects
// nothing that Weir allows.
func TestThePolicyAgreesWithWeir(t *testing.T) {
	installPolicy(t, "told", "s0", "rg0")
	installPolicy(t, "untold", "", "")
	for _, policy := range []string{"told", "untold"} { // a policy takes effect with a delay
		s := &testEnv{T: t}
		s.waitUntil(func() string {
			if isAdmitted(t, "policy-"+policy, policy, "", "web") {
				return "nothing is refused yet"
			}
			return ""
		})
	}
	text, err := os.ReadFile("../service/testdata/lists.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		part := strings.Split(strings.TrimRight(line, "\n"), "|")
		balancer, want := strings.TrimSpace(part[1]), strings.TrimSpace(part[2]) == "yes"
		if got := isAdmitted(t, fmt.Sprintf("policy-told-%d", n), "told", part[0], balancer); got != want {
			t.Errorf("%q and %s: admitted %v, want %v", part[0], balancer, got, want)
		}
		if got := isAdmitted(t, fmt.Sprintf("policy-untold-%d", n), "untold", part[0], balancer); !got && want {
			t.Errorf("%q and %s: refused by a policy that was not told what azure.json says", part[0], balancer)
		}
	}
	if n < 30 {
		t.Errorf("only %d lines", n)
	}
}
