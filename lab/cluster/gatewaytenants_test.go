// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/lab/armemu"
)

// gatewayTenant is an attacker with all rights on Gateways, routes and ReferenceGrants of the namespace shop.
type gatewayTenant struct {
	*Stage
	*rand.Rand
	gateways client.Client
}

func createOrUpdate[T client.Object](a gatewayTenant, obj T, edit func(T)) error {
	err := a.gateways.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if edit(obj); apierrors.IsNotFound(err) {
		return a.gateways.Create(ctx, obj)
	} else if err != nil {
		return err
	}
	return a.gateways.Update(ctx, obj)
}

// runAction performs and describes a random action on an object of the attacker. Names are reused.
func (t gatewayTenant) runAction() (string, error) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: oneOf(t.Rand, "edge", "web")}
	namespace := gatewayv1.Namespace(oneOf(t.Rand, "blog", "blog", "shop"))
	service := gatewayv1.ObjectName(oneOf(t.Rand, "shared", "secret", "web"))
	switch t.IntN(6) {
	case 0, 1:
		parent := gatewayv1.ParentReference{Namespace: &namespace, Name: "edge"}
		if t.IntN(2) == 0 {
			parent.SectionName = new(gatewayv1.SectionName(oneOf(t.Rand, "own", "all")))
		}
		of := gatewayv1.Namespace(oneOf(t.Rand, "blog", "blog", "shop"))
		return fmt.Sprintf("route %s of Gateway %s/edge to %s/%s", meta.Name, namespace, of, service), t.setRoute(meta, parent, of, service)
	case 2:
		return "route " + meta.Name + " is deleted", t.gateways.Delete(ctx, &gatewayv1.TCPRoute{ObjectMeta: meta})
	case 3:
		return "a grant for all of blog, and for itself", createOrUpdate(t, &gatewayv1.ReferenceGrant{ObjectMeta: meta}, func(g *gatewayv1.ReferenceGrant) {
			g.Spec.From = nil
			for _, of := range []gatewayv1.Namespace{"blog", "shop"} {
				g.Spec.From = append(g.Spec.From, gatewayv1.ReferenceGrantFrom{Group: gatewayv1.GroupName, Kind: "TCPRoute", Namespace: of})
			}
			g.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: "Service"}}
		})
	case 4:
		return "Gateway " + meta.Name + " is deleted", t.gateways.Delete(ctx, &gatewayv1.Gateway{ObjectMeta: meta})
	}
	return "Gateway " + meta.Name, t.setGateway(meta, oneOf(t.Rand, "", t.edgeOfBlog().Status.Addresses[0].Value))
}

func (t gatewayTenant) setRoute(meta metav1.ObjectMeta, parent gatewayv1.ParentReference, of gatewayv1.Namespace, service gatewayv1.ObjectName) error {
	backend := backendOf(string(service))
	backend.Namespace = &of
	return createOrUpdate(t, &gatewayv1.TCPRoute{ObjectMeta: meta}, func(r *gatewayv1.TCPRoute) {
		r.Spec.ParentRefs, r.Spec.Rules = []gatewayv1.ParentReference{parent}, []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backend}}}
	})
}

func (t gatewayTenant) setGateway(meta metav1.ObjectMeta, address string) error {
	return createOrUpdate(t, &gatewayv1.Gateway{ObjectMeta: meta}, func(gw *gatewayv1.Gateway) {
		gw.Spec.GatewayClassName, gw.Spec.Listeners = "weir", nil
		for i, name := range []gatewayv1.SectionName{"own", "all"} {
			gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{Name: name, Port: gatewayv1.PortNumber(80 + i), Protocol: gatewayv1.TCPProtocolType}) //nolint:gosec // a port
		}
		metav1.SetMetaDataAnnotation(&gw.ObjectMeta, annotation+"azure-load-balancer-ipv4", address)
		metav1.SetMetaDataAnnotation(&gw.ObjectMeta, annotation+"azure-allowed-ip-ranges", oneOf(t.Rand, "", "203.0.113.0/24"))
		gw.Labels = map[string]string{"gateway.networking.k8s.io/gateway-name": "edge"}
	})
}

func (t gatewayTenant) edgeOfBlog() *gatewayv1.Gateway {
	gw := &gatewayv1.Gateway{}
	failOn(t.gateways.Get(ctx, parseKey("blog/edge"), gw))
	return gw
}

// renderBlog renders what the Gateway of blog has: its listeners, frontend, rules with their probes and pools, and the clients
// that the security group admits.
func (t gatewayTenant) renderBlog() (names []string) {
	gw := t.edgeOfBlog()
	c, err := t.readAzure()
	failOn(err)
	for _, l := range gw.Status.Listeners {
		text, err := json.Marshal(l)
		failOn(err)
		names = append(names, "listener "+string(text))
	}
	owner := ownerOfGateway(gw)
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			if f.Name == owner {
				names = append(names, fmt.Sprintf("frontend %s of %s: %s", f.Name, b.Name, c.frontendAddress(f)))
			}
		}
		for _, r := range b.Properties.Rules {
			if strings.HasPrefix(r.Name, owner) {
				text, err := json.Marshal(r)
				failOn(err)
				names = append(names, "rule "+string(text))
			}
		}
	}
	to := netip.MustParseAddr(gw.Status.Addresses[0].Value)
	for _, from := range []string{"192.0.2.1", "203.0.113.1"} {
		for _, port := range []int32{80, 443, 8443} {
			names = append(names, fmt.Sprintf("admits %s at %d: %t", from, port, c.isAllowed(netip.MustParseAddr(from), to, "Tcp", port)))
		}
	}
	return names
}

func ownerOfGateway(gw *gatewayv1.Gateway) string {
	return ownerName(&corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: gw.UID}})
}

// checkBackends returns an error for a rule of another Gateway to a Service of blog that blog does not share, copies of
// it included.
func (t gatewayTenant) checkBackends(shared ...string) (wrong []error) {
	var services corev1.ServiceList
	failOn(t.userClient.List(ctx, &services, client.InNamespace("blog")))
	names := map[int32]string{}
	for i := range services.Items {
		s, name := &services.Items[i], services.Items[i].Name
		if source, isCopy := routing.CopySourceOf(s); isCopy {
			name = source.Backend.Name
		}
		if !slices.Contains(shared, name) {
			names[s.Spec.Ports[0].NodePort] = s.Name
		}
	}
	c, err := t.readAzure()
	failOn(err)
	owner := ownerOfGateway(t.edgeOfBlog())
	for _, b := range c.balancers {
		for _, r := range b.Properties.Rules {
			if name := names[r.Properties.BackendPort]; name != "" && !strings.HasPrefix(r.Name, owner) {
				wrong = append(wrong, fmt.Errorf("rule %s forwards to Service blog/%s", r.Name, name))
			}
		}
	}
	return wrong
}

// Whatever routes, grants and Gateways a namespace has: the Gateway of another keeps its address, rules and clients, and
// only Services that the other shares get a rule. A withdrawn grant ends these.
func TestTwoTenantsOfGateways(t *testing.T) {
	dir := gatewayAPIModule(t)
	for i := range uint64(3) {
		seed := *firstSeed + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runStage(t, Options{Seed: seed, GatewayAPI: true, Limits: armemu.AzureLimits()}, func(s *Stage) { playGatewayTenants(t, s, seed, dir) })
		})
	}
}

func playGatewayTenants(t *testing.T, s *Stage, seed uint64, dir string) {
	t.Helper()
	a := gatewayTenant{s, rand.New(rand.NewPCG(seed, 7)), installGatewayAPI(t, s, dir)} //nolint:gosec // repeatable on purpose
	for i := range 3 {
		failOn(s.AddNode(i))
	}
	s.Start()
	for _, key := range []string{"blog/shared", "blog/secret", "shop/web"} {
		failOn(s.AddService(key, func(svc *corev1.Service) { svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeNodePort, nil }))
	}
	blog := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "blog", Name: name} }
	grant := &gatewayv1.ReferenceGrant{ObjectMeta: blog("shared"), Spec: gatewayv1.ReferenceGrantSpec{
		From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "TCPRoute", Namespace: "shop"}},
		To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service", Name: new(gatewayv1.ObjectName("shared"))}},
	}}
	edge := &gatewayv1.Gateway{ObjectMeta: blog("edge"), Spec: gatewayv1.GatewaySpec{GatewayClassName: "weir", Listeners: []gatewayv1.Listener{
		{Name: "own", Port: 443, Protocol: gatewayv1.TCPProtocolType}, {Name: "admin", Port: 8443, Protocol: gatewayv1.TCPProtocolType},
	}}}
	edge.Annotations = map[string]string{annotation + "azure-allowed-ip-ranges": "192.0.2.0/25"}
	for _, obj := range []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: routing.ControllerName}},
		grant, edge, &gatewayv1.TCPRoute{ObjectMeta: blog("secret"), Spec: gatewayv1.TCPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
			Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendOf("secret")}}},
		}},
	} {
		failOn(a.gateways.Create(ctx, obj))
	}
	s.awaitRules(2)
	s.Sleep(5 * time.Minute)
	before := a.renderBlog()
	for step := range 60 {
		name, err := a.runAction()
		s.logs.addAction("%s: %v", name, err)
		failOn(ignoreRejected(err))
		s.Sleep(oneOf(a.Rand, 0, 3*time.Second, 20*time.Second))
		for _, wrong := range slices.Concat(diffLines(before, a.renderBlog()), a.checkBackends("shared"), []error{s.Violations()}) {
			if wrong == nil {
				continue
			}
			failOn(fmt.Errorf("step %d, after %s: %w", step, name, wrong))
		}
	}
	for _, name := range []string{"edge", "web"} {
		old := metav1.ObjectMeta{Namespace: "shop", Name: name}
		for _, obj := range []client.Object{&gatewayv1.Gateway{ObjectMeta: old}, &gatewayv1.TCPRoute{ObjectMeta: old}} {
			failOn(client.IgnoreNotFound(a.gateways.Delete(ctx, obj)))
		}
	}
	s.Sleep(5 * time.Minute)
	own := metav1.ObjectMeta{Namespace: "shop", Name: "edge"}
	failOn(a.setGateway(own, ""))
	failOn(a.setRoute(own, gatewayv1.ParentReference{Name: "edge"}, "blog", "shared"))
	s.Sleep(5 * time.Minute)
	if len(a.checkBackends()) == 0 {
		failOn(errors.New("the shared Service has no rule"))
	}
	failOn(a.gateways.Delete(ctx, grant))
	s.Sleep(2 * time.Minute)
	for _, wrong := range slices.Concat(diffLines(before, a.renderBlog()), a.checkBackends()) {
		failOn(fmt.Errorf("after the grant is withdrawn: %w", wrong))
	}
}
