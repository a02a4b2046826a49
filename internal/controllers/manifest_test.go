// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/internal/offline"
)

func serviceManifest(fields string) string {
	return "{apiVersion: v1, kind: Service, metadata: {name: checked}, spec: {" + fields + "}}"
}

// The validation of files agrees with the API server's.
func TestFilesAreJudgedAsByTheAPIServer(t *testing.T) {
	const lb, one = "type: LoadBalancer", "ports: [{port: 80}]"
	both := func(fields ...string) string { return serviceManifest(strings.Join(fields, ", ")) }
	named := func(name string) string { return strings.ReplaceAll(both(lb, one), "checked", name) }
	pool := func(spec string) string {
		return "{apiVersion: weir.dev/v1alpha1, kind: BackendPool, metadata: {name: checked}, spec: {" + spec + "}}"
	}
	const on = "serviceRef: {name: web}, loadBalancer: {name: lb}, poolName: p"
	manifests := []string{
		both(one), both(lb, one), both("type: NodePort", one), both("type: ExternalName, externalName: example.com."), both("clusterIP: None"),
		both(lb), both("type: Balancer", one), both("type: ExternalName"), both("type: ExternalName, externalName: a_b"), both(lb, one, "clusterIP: None"),
		both(lb, "ports: [{port: 0}]"), both(lb, "ports: [{port: 65535}]"), both(lb, "ports: [{port: 80000}]"), both(lb, "ports: [{port: -1}]"), both(lb, "ports: [{}]"),
		both(lb, "ports: [{port: 80, protocol: SCTP}]"), both(lb, "ports: [{port: 80, protocol: tcp}]"), both(lb, "ports: [{port: 80, protocol: ICMP}]"),
		both(lb, "ports: [{port: 80}, {port: 81}]"), both(lb, "ports: [{port: 80, name: a}, {port: 81, name: b}]"), both(lb, "ports: [{port: 80, name: a}, {port: 81, name: a}]"),
		both(lb, "ports: [{port: 80, name: a}, {port: 80, name: b}]"), both(lb, "ports: [{port: 80, name: a}, {port: 80, name: b, protocol: UDP}]"), both(lb, "ports: [{port: 80, name: A_b}]"),
		both(lb, "ports: [{port: 80, targetPort: http}]"), both(lb, "ports: [{port: 80, targetPort: 70000}]"), both(lb, "ports: [{port: 80, targetPort: not a name}]"), both(lb, "ports: [{port: 80, targetPort: a-name-that-is-too-long}]"),
		both(lb, "ports: [{port: 80, appProtocol: kubernetes.io/h2c}]"), both(lb, "ports: [{port: 80, appProtocol: 'a b'}]"), both("ports: [{port: 80, nodePort: 31234}]"),
		both(lb, one, "selector: {app: web}"), both(lb, one, "selector: {app: 'a b'}"), both(lb, one, "selector: {'a b': web}"),
		both(lb, one, "sessionAffinity: ClientIP"), both(lb, one, "sessionAffinity: Cookie"), both(lb, one, "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}"),
		both(lb, one, "sessionAffinity: None, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10}}"),
		both(lb, one, "sessionAffinityConfig: {clientIP: {timeoutSeconds: 10}}"),
		both(lb, one, "ipFamilies: [IPv4]"), both(lb, one, "ipFamilies: [IPv5]"), both(lb, one, "ipFamilies: [IPv4, IPv4]"), both(lb, one, "ipFamilyPolicy: SingleStack"), both(lb, one, "ipFamilyPolicy: Both"),
		both(lb, one, "ipFamilies: [IPv4, IPv6], ipFamilyPolicy: SingleStack"),
		both(lb, one, "externalIPs: [20.0.0.1]"), both(lb, one, "externalIPs: [here]"), both(lb, one, "externalIPs: [127.0.0.1]"), both(lb, one, "externalIPs: [169.254.0.1]"),
		both(lb, one, "loadBalancerSourceRanges: [10.0.0.0/8]"), both(lb, one, "loadBalancerSourceRanges: [' 10.0.0.1/8 ']"), both(lb, one, "loadBalancerSourceRanges: [10.0.0.0/33]"),
		both(lb, one, "loadBalancerSourceRanges: [10.0.0.0]"), both(one, "loadBalancerSourceRanges: [10.0.0.0/8]"), both(lb, one, "loadBalancerSourceRanges: ['']"),
		strings.ReplaceAll(both(lb, one), "name: checked", "name: checked, annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: '10.0.0.0/8, 192.0.2.0/24'}"),
		strings.ReplaceAll(both(lb, one), "name: checked", "name: checked, annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: here}"),
		strings.ReplaceAll(both(one), "name: checked", "name: checked, annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: 10.0.0.0/8}"),
		both(lb, one, "loadBalancerClass: weir.dev/azure"), both(lb, one, "loadBalancerClass: 'a b'"), both(one, "loadBalancerClass: weir.dev/azure"), both(one, "allocateLoadBalancerNodePorts: true"),
		both(lb, one, "externalTrafficPolicy: Local"), both(lb, one, "externalTrafficPolicy: Here"), both(one, "externalTrafficPolicy: Local"), both(lb, one, "healthCheckNodePort: 31999"),
		both(lb, one, "internalTrafficPolicy: Local"), both(lb, one, "internalTrafficPolicy: Here"),
		named("web-1"), named("1web"), named("web.a"), named("Web"), named(strings.Repeat("w", 63)), named(strings.Repeat("w", 64)), named("''"),
		strings.ReplaceAll(both(lb, one), "name: checked", "name: checked, labels: {'a b': c}"),
		both(lb, "prots: [{port: 80}]"), both(lb, one, "Type: LoadBalancer"), both(lb, "ports: 80"),
		pool(on), pool(on + ", ipFamily: IPv6"), pool(on + ", ipFamily: IPv5"), pool(on + ", nodes: {}"), pool("loadBalancer: {name: lb}, poolName: p"), pool("nodes: {selector: {}}, loadBalancer: {name: lb}, poolName: p"),
		pool("serviceRef: {name: ''}, loadBalancer: {name: lb}, poolName: p"), pool("serviceRef: {name: web}, loadBalancer: {name: a/b}, poolName: p"), pool("serviceRef: {name: web}, loadBalancer: {name: lb}"),
		pool(on + ", unknown: 1"), pool("serviceRef: {name: web}, loadBalancer: {name: lb, resourceGroup: a/b}, poolName: p"),
	}
	for _, text := range manifests {
		var o offline.Objects
		broken := errors.Join(o.DecodeFile("f", strings.NewReader(text))...)
		refused := serverDryRun(t, text)
		if (broken != nil) != (refused != nil) {
			t.Errorf("%s\n of the files: %v\nof the server: %v", text, broken, refused)
		}
	}
}

func serverDryRun(t *testing.T, text string) error {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("default")
	err := client.WithFieldValidation(api, metav1.FieldValidationStrict).Create(t.Context(), u, client.DryRunAll)
	if status := apierrors.APIStatus(nil); err != nil && (!errors.As(err, &status) || status.Status().Code >= 500) {
		t.Fatal(err)
	}
	return err
}

// Dry runs store nothing. A namespace may exist only in the files.
func TestTheAPIServerChecksFiles(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	judge := func(text string) string {
		var o offline.Objects
		if broken := o.DecodeFile("f", strings.NewReader(strings.ReplaceAll(text, "$", s.ns))); broken != nil {
			t.Fatal(broken)
		}
		refused, err := o.ValidateOnServer(t.Context(), api)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(refused)
	}
	svc := "{apiVersion: v1, kind: Service, metadata: {namespace: $, name: NAME, resourceVersion: '1', uid: u}, spec: {type: LoadBalancer, ports: [{port: 80, nodePort: PORT}]}}"
	for _, tt := range []struct{ name, text, wantText string }{
		{"new", strings.NewReplacer("NAME", "new", "PORT", "0").Replace(svc), "[]"},
		{"there", strings.NewReplacer("NAME", "web", "PORT", "0").Replace(svc), "[]"},
		{"no such namespace", strings.NewReplacer("NAME", "new", "PORT", "0", "$", "nowhere").Replace(svc), `f: document 1: Service nowhere/new: the API server refuses it: namespaces "nowhere" not found`},
		{"it comes along", strings.NewReplacer("NAME", "new", "PORT", "0", "$", "nowhere").Replace(svc) + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}", "[]"},
	} {
		if got := judge(tt.text); !strings.Contains(got, tt.wantText) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.wantText)
		}
	}
}
