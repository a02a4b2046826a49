// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// attacker is a tenant with random actions. Actions rejected by the API server do not count.
type attacker struct {
	*neighbour
	as        client.Client
	namespace string
	rand      *rand.Rand
	made      int
	// uids are owner UIDs that it read or guessed.
	uids  []types.UID
	deeds []string
}

func (n *neighbour) attacker(r *rand.Rand) *attacker {
	n.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-tenant-"}}
	n.must(n.cluster.Create(n.t.Context(), ns))
	a := &attacker{neighbour: n, namespace: ns.Name, rand: r, uids: []types.UID{"11111111-2222-3333-4444-555555555555"}}
	for _, name := range []string{"web", "all"} {
		var s corev1.Service
		n.must(n.cluster.Get(n.t.Context(), key(n.namespace, name), &s))
		a.uids = append(a.uids, s.UID)
	}
	// The stock role edit is aggregated by a controller that does not run here.
	tenant := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "tenant", Namespace: ns.Name}}
	n.must(n.cluster.Create(n.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "backendpools", Namespace: ns.Name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"weir.dev"}, Resources: []string{"backendpools"}, Verbs: []string{"*"}}},
	}))
	for name, role := range map[string]rbacv1.RoleRef{
		"edit":         {Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
		"view":         {Kind: "ClusterRole", Name: "system:aggregate-to-view"},
		"backendpools": {Kind: "Role", Name: "backendpools"},
	} {
		role.APIGroup = rbacv1.GroupName
		n.must(n.cluster.Create(n.t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns.Name}, RoleRef: role, Subjects: tenant}))
	}
	cfg := rest.CopyConfig(n.cluster.rest)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns.Name + ":tenant"}
	var err error
	a.as, err = client.New(cfg, client.Options{Scheme: n.cluster.Scheme()})
	n.must(err)
	return a
}

func randomOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// runAction performs one action.
func (a *attacker) runAction() {
	a.t.Helper()
	act := randomOf(a.rand, a.bindPool, a.bindPool, a.createService, a.createService, a.shareAddress, a.closeNodes, a.editService, a.editPool, a.copyPool, a.announceEviction, a.deleteRandom)
	name, err := act()
	if err == nil && name != "" {
		a.deeds = append(a.deeds, name)
	}
}

func (a *attacker) name(kind string) string {
	a.made++
	return fmt.Sprintf("%s-%d", kind, a.made)
}

func (a *attacker) balancer() string {
	bound := a.bound[strings.LastIndex(a.bound, "/")+1:]
	return randomOf(a.rand, a.neighbour.namespace, a.neighbour.namespace, a.neighbour.namespace+"-internal", bound, bound, "no-such")
}

func (a *attacker) poolName() string {
	b := a.neighbour.namespace
	return randomOf(a.rand, b, b+"-web", strings.ToUpper(b)+"-WEB", b+"-IPv6", "edge", a.namespace+"-svc-1", "new-"+a.namespace)
}

func (a *attacker) objectName() string {
	b := a.neighbour.namespace
	return randomOf(a.rand, "web."+b, "all."+b, "nodes."+b, "svc-1."+b, "")
}

// bindPool creates a BackendPool with a false owner.
func (a *attacker) bindPool() (string, error) {
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Name: a.objectName(), Namespace: a.namespace},
		Spec:       v1alpha1.BackendPoolSpec{LoadBalancer: v1alpha1.LoadBalancerReference{Name: a.balancer()}, PoolName: a.poolName()},
	}
	if p.Name == "" {
		p.Name = a.name("pool")
	}
	if a.rand.IntN(2) == 0 {
		p.Spec.Nodes = &v1alpha1.NodeMembers{}
	} else {
		p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: randomOf(a.rand, "web", "all", "svc-1", "nobody")}
	}
	a.addMarks(p)
	return a.creates(p, fmt.Sprintf("BackendPool of %s/%s, owners %v", p.Spec.LoadBalancer.Name, p.Spec.PoolName, p.OwnerReferences))
}

func (a *attacker) addMarks(obj client.Object) {
	if a.rand.IntN(2) == 0 {
		obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "weir"})
	}
	if a.rand.IntN(2) == 0 {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: randomOf(a.rand, "web", "all", "svc-1"), UID: randomOf(a.rand, a.uids...), Controller: new(true)}})
	}
	if a.rand.IntN(3) == 0 {
		obj.SetFinalizers([]string{v1alpha1.Finalizer})
	}
}

func (a *attacker) creates(obj client.Object, about string) (string, error) {
	return "creates " + obj.GetName() + ": " + about, a.as.Create(a.t.Context(), obj)
}

// annotations returns requests at the neighbor's expense, and forged records.
func (a *attacker) annotations() map[string]string {
	before, b := a.picture(), a.neighbour.namespace
	foreign := before["address of web"]
	annotations := map[string]string{}
	for range a.rand.IntN(3) {
		name := randomOf(a.rand, "azure-pip-name", "azure-load-balancer-ipv4", "azure-additional-public-ips", "azure-load-balancer-resource-group",
			"azure-dns-label-name", "azure-deny-all-except-load-balancer-source-ranges", "azure-load-balancer-internal",
			"azure-disable-load-balancer-floating-ip", "azure-allowed-service-tags", "load-balancer-source-ranges")
		value := map[string]string{
			"azure-pip-name": b + "-" + a.owner("web"), "azure-load-balancer-ipv4": foreign,
			"azure-additional-public-ips":        randomOf(a.rand, foreign, "10.0.0.1", "10.0.0.1,10.0.0.2,10.0.0.3"),
			"azure-load-balancer-resource-group": randomOf(a.rand, "rg", "no-such"), "azure-dns-label-name": "label",
			"azure-allowed-service-tags":  randomOf(a.rand, "Internet", strings.Repeat("Storage,", 4000)+"Storage"),
			"load-balancer-source-ranges": randomOf(a.rand, "198.51.100.0/24", manyRanges(5000)),
		}[name]
		if value == "" {
			value = "true"
		}
		annotations["service.beta.kubernetes.io/"+name] = value
	}
	if a.rand.IntN(3) == 0 {
		annotations["weir.dev/load-balancer"] = randomOf(a.rand, b, b+"-terraform", b+","+b+"-internal")
	}
	if a.rand.IntN(4) == 0 {
		annotations["weir.dev/public-ip-resource-groups"] = randomOf(a.rand, "rg", "other", strings.Repeat("g,", 2000)+"rg")
	}
	if a.rand.IntN(4) == 0 {
		annotations["weir.dev/dry-run"] = "true"
	}
	return annotations
}

func manyRanges(n int) string {
	ranges := make([]string, n)
	for i := range ranges {
		ranges[i] = fmt.Sprintf("100.%d.%d.0/24", 64+i/256%64, i%256)
	}
	return strings.Join(ranges, ",")
}

// createService creates a Service of Weir's class on the neighbor's port.
func (a *attacker) createService() (string, error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: randomOf(a.rand, a.name("svc"), "web", "all"), Namespace: a.namespace, Annotations: a.annotations()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: 80}},
			ExternalTrafficPolicy: randomOf(a.rand, corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster),
		},
	}
	if a.rand.IntN(3) == 0 {
		s.Finalizers = []string{"weir.dev/azure-load-balancer"}
	}
	name, err := a.creates(s, brief(s.Annotations))
	if err == nil {
		a.uids = append(a.uids, s.UID)
		err = a.as.Create(a.t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: s.Name + "-1", Namespace: a.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints(a.nodes[:1+a.rand.IntN(len(a.nodes))]),
		})
		return name, client.IgnoreAlreadyExists(err)
	}
	return name, err
}

func brief(annotations map[string]string) string {
	text := fmt.Sprint(annotations)
	return text[:min(len(text), 300)]
}

// shareAddress creates a Service at the neighbor's address on its own port, and closes it for the
// neighbor's clients.
func (a *attacker) shareAddress() (string, error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: a.name("guest"), Namespace: a.namespace, Annotations: map[string]string{
			"service.beta.kubernetes.io/azure-load-balancer-ipv4":                          a.picture()["address of "+randomOf(a.rand, "web", "all")],
			"service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges": "true",
		}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: int32(8000 + a.made)}},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster, LoadBalancerSourceRanges: []string{"203.0.113.0/24"},
		},
	}
	return a.creates(s, brief(s.Annotations))
}

// closeNodes creates an internal Service with all ports at the nodes' addresses.
func (a *attacker) closeNodes() (string, error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: a.name("all-ports"), Namespace: a.namespace, Annotations: map[string]string{
			"service.beta.kubernetes.io/azure-load-balancer-internal":                       "true",
			"service.beta.kubernetes.io/azure-load-balancer-enable-high-availability-ports": "true",
			"service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip":            "true",
			"service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges":  "true",
		}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: 80}},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster, LoadBalancerSourceRanges: []string{"203.0.113.0/24"},
		},
	}
	return a.creates(s, brief(s.Annotations))
}

// editService changes records, finalizers, policy or type of its Services.
func (a *attacker) editService() (string, error) {
	var list corev1.ServiceList
	if err := a.as.List(a.t.Context(), &list, client.InNamespace(a.namespace)); err != nil || len(list.Items) == 0 {
		return "", err
	}
	s := randomOf(a.rand, list.Items...)
	before := s.DeepCopy()
	switch a.rand.IntN(4) {
	case 0:
		s.Annotations = a.annotations()
	case 1:
		s.Finalizers = nil
	case 2:
		s.Spec.ExternalTrafficPolicy = randomOf(a.rand, corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster)
		s.Spec.HealthCheckNodePort = 0
	case 3:
		s.Labels = map[string]string{"app.kubernetes.io/managed-by": "weir"}
	}
	return fmt.Sprintf("edits Service %s: annotations %s, finalizers %v", s.Name, brief(s.Annotations), s.Finalizers), a.as.Patch(a.t.Context(), &s, client.MergeFrom(before))
}

// editPool changes marks or pool of a BackendPool, possibly Weir's.
func (a *attacker) editPool() (string, error) {
	var list v1alpha1.BackendPoolList
	if err := a.as.List(a.t.Context(), &list, client.InNamespace(a.namespace)); err != nil || len(list.Items) == 0 {
		return "", err
	}
	p := randomOf(a.rand, list.Items...)
	before := p.DeepCopy()
	switch a.rand.IntN(3) {
	case 0:
		a.addMarks(&p)
	case 1:
		p.Finalizers = nil
	case 2:
		p.Spec.LoadBalancer.Name, p.Spec.PoolName = a.balancer(), a.poolName()
	}
	return fmt.Sprintf("edits BackendPool %s: of %s/%s, owners %v, finalizers %v", p.Name, p.Spec.LoadBalancer.Name, p.Spec.PoolName, p.OwnerReferences, p.Finalizers),
		a.as.Patch(a.t.Context(), &p, client.MergeFrom(before))
}

// copyPool copies an object of the neighbor's.
func (a *attacker) copyPool() (string, error) {
	foreign := a.pools()
	if len(foreign) == 0 {
		return "", nil
	}
	p := randomOf(a.rand, foreign...)
	p.Namespace, p.ResourceVersion, p.UID = a.namespace, "", ""
	return a.creates(&p, fmt.Sprintf("copy of the neighbour's, of %s/%s", p.Spec.LoadBalancer.Name, p.Spec.PoolName))
}

// announceEviction forges an eviction notice.
func (a *attacker) announceEviction() (string, error) {
	now := metav1.Now()
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: a.name("event"), Namespace: a.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: randomOf(a.rand, a.nodes...), Namespace: randomOf(a.rand, "", a.namespace)},
		Reason:         "PreemptScheduled", Source: corev1.EventSource{Component: randomOf(a.rand, "node-problem-detector", "tenant")},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	return a.creates(e, "eviction of "+e.InvolvedObject.Name)
}

// deleteRandom deletes one of its objects.
func (a *attacker) deleteRandom() (string, error) {
	var list v1alpha1.BackendPoolList
	if err := a.as.List(a.t.Context(), &list, client.InNamespace(a.namespace)); err != nil {
		return "", err
	}
	var services corev1.ServiceList
	if err := a.as.List(a.t.Context(), &services, client.InNamespace(a.namespace)); err != nil {
		return "", err
	}
	var objects []client.Object
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	for i := range services.Items {
		objects = append(objects, &services.Items[i])
	}
	if len(objects) == 0 {
		return "", nil
	}
	obj := randomOf(a.rand, objects...)
	return fmt.Sprintf("deletes %T %s", obj, obj.GetName()), a.as.Delete(a.t.Context(), obj)
}

// waitServed waits until a valid Service of the tenant has its address: all previous actions were
// processed by then.
func (a *attacker) waitServed(step int) {
	a.t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("honest-%d", step), Namespace: a.namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: 443}},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
		},
	}
	a.must(a.as.Create(a.t.Context(), s))
	a.eventually("the tenant's own Service", func() error {
		var now corev1.Service
		if err := a.cluster.Get(a.t.Context(), client.ObjectKeyFromObject(s), &now); err != nil {
			return err
		}
		if len(now.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("%s has no address", s.Name)
		}
		return nil
	})
}

// deleteAll deletes all its objects.
func (a *attacker) deleteAll() {
	a.t.Helper()
	for _, obj := range []client.Object{&v1alpha1.BackendPool{}, &corev1.Service{}, &corev1.Event{}} {
		a.must(a.cluster.DeleteAllOf(a.t.Context(), obj, client.InNamespace(a.namespace)))
	}
	a.eventually("the tenant's objects go", func() error {
		var services corev1.ServiceList
		var pools v1alpha1.BackendPoolList
		a.must(a.cluster.List(a.t.Context(), &services, client.InNamespace(a.namespace)))
		a.must(a.cluster.List(a.t.Context(), &pools, client.InNamespace(a.namespace)))
		if n := len(services.Items) + len(pools.Items); n > 0 {
			return fmt.Errorf("%d are left, say %v %v", n, services.Items, pools.Items)
		}
		return nil
	})
}
