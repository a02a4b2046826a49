// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/apiserver"
	"weir.dev/weir/test/objects"
)

// What Weir wrote is removed, everything else is kept, and kept Services are reported.
func TestLeave(t *testing.T) {
	c := newCluster(t, plainService("web", true), plainService("api", true), recordedPool(), unrecordedPool("api"), plainService("other", false), userPool(), placedNode())
	l, output := c.runCleanup(t, false)
	if l.Services != 2 || l.Pools != 2 || l.Nodes != 1 || l.Skipped != 0 {
		t.Errorf("%d Services, %d pools, %d nodes, %d kept", l.Services, l.Pools, l.Nodes, l.Skipped)
	}
	c.requireEqual(t, output,
		"BackendPool shop/api.kubernetes: deleted; pool shop-web remains unchanged",
		"BackendPool shop/mine remains: a user created it; no other controller manages its pool",
		"BackendPool shop/web.kubernetes: address 10.0.0.1 of node n1 is set to Down in Azure and remains so: it is deleted",
		"BackendPool shop/web.kubernetes: deleted; pool shop-web remains unchanged",
		"Node n1: an eviction was announced, and Weir tainted it; if the eviction does not happen, remove the taint",
		"Node n1: label weir.dev/load-balancer taken off",
		"Service shop/api: finalizer and record taken off",
		"Service shop/web: finalizer and record taken off")
	c.requireEqual(t, c.leftObjects(t),
		"backendpools mine [weir.dev/backend-pool]",
		"nodes n1 zone=1",
		"services api [of/others] peoples=own",
		"services other [of/others] peoples=own",
		"services web [of/others] peoples=own")
}

// A Service with a class is kept with everything it needs.
func TestAServiceWithAClassStays(t *testing.T) {
	classed := plainService("web", true)
	classed.Spec.LoadBalancerClass = new("weir.dev/azure")
	nodes := objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes), objects.InNamespace("shop"))
	c := newCluster(t, classed, recordedPool(), nodes, placedNode())
	before := c.leftObjects(t)
	_, output := c.runCleanup(t, false)
	c.requireEqual(t, output,
		"BackendPool shop/nodes.kubernetes remains: a Service that needs it remains",
		"BackendPool shop/web.kubernetes remains: a Service that needs it remains",
		"Node n1: an eviction was announced, and Weir tainted it; if the eviction does not happen, remove the taint",
		"Service shop/web remains: it has the class weir.dev/azure, which no other controller serves, and which cannot be changed")
	c.requireEqual(t, c.leftObjects(t), before...)
}

// A Service being deleted is kept, unless the other controller has its own finalizer.
func TestAServiceThatIsBeingDeleted(t *testing.T) {
	for _, tt := range []struct {
		name, finalizer string
		kept            int
		wantText        string
	}{
		{"nobody else has it", "of/others", 1, "Service shop/web remains: it is being deleted, and no other controller would remove its resources from Azure: let Weir finish first"},
		{"the other controller has it", metadata.CleanupFinalizer, 0, "Service shop/web: finalizer and record taken off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := plainService("web", true)
			s.Finalizers = append(s.Finalizers, tt.finalizer)
			c := newCluster(t, s)
			if err := c.server.Delete("services", "shop", "web"); err != nil {
				t.Fatal(err)
			}
			l, output := c.runCleanup(t, false)
			if c.requireEqual(t, output, tt.wantText); l.Skipped != tt.kept {
				t.Errorf("%d kept", l.Skipped)
			}
		})
	}
}

// A Private Link Service remains in Azure and is reported.
func TestAPrivateLinkServiceStays(t *testing.T) {
	published := plainService("web", true)
	published.Annotations[metadata.LinkGroupsAnnotation] = "links"
	published.Annotations["service.beta.kubernetes.io/azure-pls-create"] = "true"
	c := newCluster(t, published, plainService("api", true))
	_, output := c.runCleanup(t, false)
	c.requireEqual(t, output,
		"Service shop/api: finalizer and record taken off",
		`Service shop/web: a Private Link Service with its tags in resource group "links" remains unchanged`,
		"Service shop/web: finalizer and record taken off")
	c.requireEqual(t, c.leftObjects(t),
		"services api [of/others] peoples=own",
		"services web [of/others] peoples=own service.beta.kubernetes.io/azure-pls-create=true")
}

// A dry run reports the same and writes nothing.
func TestDryRun(t *testing.T) {
	objects := []runtime.Object{plainService("web", true), plainService("api", true), recordedPool(), unrecordedPool("api"), placedNode()}
	c := newCluster(t, objects...)
	before := c.leftObjects(t)
	_, would := c.runCleanup(t, true)
	c.requireEqual(t, c.leftObjects(t), before...)
	if n := c.countWrites(); n > 0 {
		t.Errorf("%d writes", n)
	}
	_, does := c.runCleanup(t, false)
	c.requireEqual(t, does, would...)
}

// A run interrupted at any write can be repeated with the same result.
func TestInterruptedAnywhere(t *testing.T) {
	all := func() *cluster {
		return newCluster(t, plainService("web", true), plainService("api", true), recordedPool(), unrecordedPool("api"), userPool(), placedNode())
	}
	whole := all()
	whole.runCleanup(t, false)
	for n := range whole.countWrites() {
		c := all()
		c.stopAt = n + 1
		if err := c.newCleanup(false).RemoveAll(t.Context()); err == nil {
			t.Fatalf("write %d: no error", n)
		}
		c.stopAt = 0
		c.runCleanup(t, false)
		c.requireEqual(t, c.leftObjects(t), whole.leftObjects(t)...)
	}
}

type cluster struct {
	server *apiserver.Server
	api    client.Client
	said   []string
	// Write number stopAt, if not 0, is lost.
	written, stopAt int
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{server: apiserver.New(apiserver.Options{Seed: 1})}
	t.Cleanup(c.server.Close)
	text, err := os.ReadFile("../../config/crd/weir.dev_backendpools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.server.Install(text); err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, o := range append([]runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}, objects...) {
		if p, ok := o.(*v1alpha1.BackendPool); ok {
			p.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("BackendPool"))
			for i := range p.OwnerReferences {
				p.OwnerReferences[i].Name, p.OwnerReferences[i].UID = p.Spec.ServiceRef.Name, uids[p.Spec.ServiceRef.Name]
			}
		}
		stored, err := c.server.Put(o)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := stored.(*corev1.Service); ok {
			uids[s.Name] = s.UID
		}
	}
	rc := c.server.RESTConfig("leave")
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{c, next} })
	if c.api, err = client.New(rc, client.Options{Scheme: metadata.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return c
}

type transport struct {
	c    *cluster
	next http.RoundTripper
}

func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if tr.c.written++; tr.c.written == tr.c.stopAt {
			return nil, http.ErrServerClosed
		}
	}
	return tr.next.RoundTrip(r)
}

func (c *cluster) countWrites() int { return c.written }

func (c *cluster) newCleanup(dry bool) *app.Cleanup {
	c.said = nil
	return &app.Cleanup{API: c.api, DryRun: dry, Report: func(text string) { c.said = append(c.said, text) }}
}

func (c *cluster) runCleanup(t *testing.T, dry bool) (*app.Cleanup, []string) {
	t.Helper()
	l := c.newCleanup(dry)
	if err := l.RemoveAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.said)
	return l, c.said
}

func (c *cluster) leftObjects(t *testing.T) (lines []string) {
	t.Helper()
	for _, resource := range []string{"backendpools", "nodes", "services"} {
		objects, err := c.server.List(resource, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			m := o.(metav1.Object)
			line := resource + " " + m.GetName()
			if len(m.GetFinalizers()) > 0 {
				line += " [" + strings.Join(m.GetFinalizers(), " ") + "]"
			}
			for _, pairs := range []map[string]string{m.GetLabels(), m.GetAnnotations()} {
				for _, k := range slices.Sorted(maps.Keys(pairs)) {
					if k != metadata.PreemptionAnnotation {
						line += " " + k + "=" + pairs[k]
					}
				}
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func (c *cluster) requireEqual(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func plainService(name string, served bool) *corev1.Service {
	s := objects.NewService(corev1.ServiceTypeLoadBalancer)
	s.Name = name
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	s.Finalizers, s.Annotations = []string{"of/others"}, map[string]string{"peoples": "own"}
	if served {
		s.Finalizers = append(s.Finalizers, metadata.ServiceFinalizer)
		s.Annotations[metadata.PlaceAnnotation], s.Annotations[metadata.ClassAnnotation] = "kubernetes", ""
		s.Annotations[metadata.GroupsAnnotation] = "addresses"
	}
	return s
}

func recordedPool() *v1alpha1.BackendPool {
	return objects.ManagedPool(objects.WithAzurePool, objects.RecordedAs(objects.WebUID), func(p *v1alpha1.BackendPool) {
		p.Status.Down = []v1alpha1.DownAddress{{Address: "10.0.0.1", Node: "n1", Reason: "it is deleted", Since: metav1.Now()}}
	})
}

// unrecordedPool is a BackendPool created before the record existed.
func unrecordedPool(service string) *v1alpha1.BackendPool {
	return objects.ManagedPool(objects.WithAzurePool, objects.WithName(cache.PoolObjectName(service, "kubernetes", lb.IPv4)), objects.OfService(service))
}

func userPool() *v1alpha1.BackendPool {
	return objects.NewBackendPool("mine", 0, objects.WithAzurePool)
}

func placedNode() *corev1.Node {
	n := objects.NewNode(1)
	n.Labels = map[string]string{metadata.PlaceLabel: "lb1", "zone": "1"}
	n.Annotations = map[string]string{metadata.PreemptionAnnotation: "1"}
	return n
}
