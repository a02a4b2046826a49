// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/shipped"
)

// Weir starts after cloud-provider-azure stopped: nothing is written and no connection is dropped.
// Each change in the cluster then changes only its own resources. When Weir leaves, Azure does not
// change; when it returns, it completes what another controller began.
func TestATakeoverAndTheWayBack(t *testing.T) {
	w := &world{T: t, cloud: newCloud(t, ofAddresses, shipped.AzureRole()), left: ofAddresses}
	weir, _ := w.takeOver("No changes (20 Services).")
	w.editServices()
	w.addAndDelete()
	w.removeWeir(weir, w.checkUnclaimed)
	w.checkInherited()
}

// takeOver starts Weir twice: nothing is written, no connection is dropped, and all resources are
// unchanged. It returns them and Weir's process.
func (w *world) takeOver(planned string) (weir *process.Process, original map[string]string) {
	w.Helper()
	services := w.createObjects()
	original = w.resourceParts(w.T)
	w.checkDropped("the Azure cloud provider has stopped", 0)
	if out, code := w.plan(); code != 0 || !strings.Contains(out, planned) {
		w.Fatalf("weir plan ends with %d:\n%s", code, out)
	}
	weir = w.enableOneFirst(len(services))
	w.waitManaged(len(services))
	w.checkNoWrites("the takeover")
	w.checkOwners(services)
	w.checkAddresses(services)
	w.stop(weir)
	weir = w.start()
	w.waitManaged(len(services))
	w.checkNoWrites("a restart")
	if now := w.resourceParts(w.T); !maps.Equal(original, now) {
		w.Errorf("changed: %v", diffParts(original, now))
	}
	return weir, original
}

// enableOneFirst starts Weir with all Services in dry run, then enables one of them, then all.
func (w *world) enableOneFirst(services int) *process.Process {
	w.Helper()
	w.kubectl("annotate", "services", "--all", "--all-namespaces", metadata.DryRunAnnotation+"=true")
	weir := w.start()
	w.eventually("dry runs", func() error {
		output := w.kubectl("get", "events", "-A", "--field-selector=reason=DryRun", "-o", "custom-columns=:.regarding.name,:.note,:.message", "--no-headers")
		if n := strings.Count(output, "dry run: nothing would change in Azure"); n != services {
			return fmt.Errorf("%d of %d say that nothing would change:\n%s", n, services, output)
		}
		return nil
	})
	w.kubectl("annotate", "service", "cluster", metadata.DryRunAnnotation+"-")
	w.waitManaged(1)
	w.checkNoWrites("the first Service")
	w.kubectl("annotate", "services", "--all", "--all-namespaces", metadata.DryRunAnnotation+"-")
	return weir
}

// checkDropped checks and reports the connections dropped since the last call.
func (w *world) checkDropped(when string, want int, whose ...string) {
	w.Helper()
	dropped, open := w.takeDropped()
	w.Logf("%s: %d connections dropped, %d open", when, len(dropped), open)
	if len(dropped) != want || open == 0 {
		w.Errorf("%s: dropped %v, want %d", when, dropped, want)
	}
	for _, f := range dropped {
		if !slices.ContainsFunc(whose, func(part string) bool { return strings.Contains(f.String(), part) }) {
			w.Errorf("%s: dropped %v, want those of %v alone", when, f, whose)
		}
	}
}

// waitManaged waits until Weir manages all Services and their pools.
func (w *world) waitManaged(services int) {
	w.Helper()
	w.eventually("takeover", func() error {
		var list corev1.ServiceList
		var pools v1alpha1.BackendPoolList
		w.must(errors.Join(cluster.List(w.Context(), &list), cluster.List(w.Context(), &pools)))
		n := 0
		for _, s := range list.Items {
			if slices.Contains(s.Finalizers, metadata.ServiceFinalizer) && s.Annotations[metadata.PlaceAnnotation] != "" {
				n++
			}
		}
		if n != services || len(pools.Items) == 0 {
			return fmt.Errorf("%d Services taken, want %d; %d BackendPools", n, services, len(pools.Items))
		}
		for _, p := range pools.Items {
			if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("BackendPool %s: %v", p.Name, c)
			}
		}
		return nil
	})
}

// checkNoWrites checks that Azure got no write.
func (w *world) checkNoWrites(when string) {
	w.Helper()
	time.Sleep(2 * time.Second) // time for a wrong write
	if wrote := w.writesSince(0); len(wrote) > 0 {
		w.Errorf("%s wrote %v", when, wrote)
	}
	w.checkDropped(when, 0)
}

// checkOwners checks the records of namespaces that use a public IP not created by
// cloud-provider-azure, or that requested a private address.
func (w *world) checkOwners(services []corev1.Service) {
	w.Helper()
	record := ""
	for _, name := range []string{"weir-public-ips", "weir-private-ips"} {
		var m corev1.ConfigMap
		w.must(client.IgnoreNotFound(cluster.Get(w.Context(), client.ObjectKey{Namespace: "weir-system", Name: name}, &m)))
		record += strings.Join(slices.Collect(maps.Values(m.Data)), "")
	}
	lines := 0
	for _, s := range services {
		var line string
		if name := s.Annotations[service.PIPName]; name != "" {
			line = "/publicipaddresses/" + strings.ToLower(name) + " " + s.Namespace + " "
		} else if ip := s.Annotations[service.IPv4]; ip != "" && s.Annotations[service.Internal] == "true" {
			line = "/subnets/subnet " + ip + " " + s.Namespace + " "
		} else {
			continue
		}
		if lines++; !strings.Contains(record, line) {
			w.Errorf("%s/%s: the records lack %q: %s", s.Namespace, s.Name, line, record)
		}
	}
	w.Logf("%d Services have an address on record", lines)
}

// checkAddresses checks that every Service still has its addresses, and the other controller's
// finalizer.
func (w *world) checkAddresses(services []corev1.Service) {
	w.Helper()
	for _, before := range services {
		var got corev1.Service
		w.must(cluster.Get(w.Context(), client.ObjectKeyFromObject(&before), &got))
		if !reflect.DeepEqual(got.Status.LoadBalancer, before.Status.LoadBalancer) || !slices.Contains(got.Finalizers, metadata.CleanupFinalizer) {
			w.Errorf("Service %s shows %v and has %v, want %v", before.Name, got.Status.LoadBalancer, got.Finalizers, before.Status.LoadBalancer)
		}
	}
}

// waitChanged waits until exactly these parts differ.
func (w *world) waitChanged(before map[string]string, when string, want ...string) {
	w.Helper()
	w.eventually(when, func() error {
		now, writes := w.resourceParts(w.T), len(w.writesSince(0))
		got := diffParts(before, now)
		if slices.Equal(got, want) {
			if time.Sleep(500 * time.Millisecond); len(w.writesSince(0)) > writes {
				return errors.New("another write came")
			}
			return nil
		}
		text := ""
		for _, line := range got {
			text += fmt.Sprintf("\n%s\n  was %s\n  is %s", line, before[line[2:]], now[line[2:]])
		}
		return fmt.Errorf("changed%s\nwant\n  %s", text, strings.Join(want, "\n  "))
	})
}

const (
	timeouts     = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"
	clusterOwner = "a11b146a9e7f5460cabe5a353797607f" // default/cluster
	localOwner   = "ae889c02335294bdcb496e61e2a6bf69" // shop/local
	// Security rules that allow all sources: port80 is shared by most Services.
	group  = "networkSecurityGroups/nsg securityRules/k8s-azure-lb_allow_IPv4_"
	port80 = "d39272f7f57ed937951650d93992ad77"

	affinityOwner = "a07c95ed4185048e68c76392b41eb730" // default/affinity
)

// editServices edits Services created by the other controller, one at a time.
func (w *world) editServices() {
	w.Helper()
	before := w.resourceParts(w.T)
	w.kubectl("annotate", "service", "cluster", timeouts+"=9")
	w.waitChanged(before, "an annotation", "~ loadBalancers/kubernetes loadBalancingRules/"+clusterOwner+"-TCP-80")
	w.checkDropped("an annotation", 0)

	before = w.resourceParts(w.T)
	w.kubectl("patch", "service", "cluster", "--type=json", `-p=[{"op":"replace","path":"/spec/ports/0/port","value":81}]`)
	w.waitChanged(before, "a port",
		"- loadBalancers/kubernetes loadBalancingRules/"+clusterOwner+"-TCP-80", "+ loadBalancers/kubernetes loadBalancingRules/"+clusterOwner+"-TCP-81",
		"- loadBalancers/kubernetes probes/"+clusterOwner+"-TCP-80", "+ loadBalancers/kubernetes probes/"+clusterOwner+"-TCP-81",
		"+ "+group+"4938d66461e6465d2065760a1ff5c04e", "~ "+group+port80)
	w.checkDropped("a port", 2, clusterOwner+"-TCP-80")

	before = w.resourceParts(w.T)
	var slice discoveryv1.EndpointSlice
	w.must(cluster.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "local-1"}, &slice))
	slice.Endpoints[0].NodeName = new("node-0")
	w.must(cluster.Update(w.Context(), &slice))
	w.waitChanged(before, "endpoints that move", "~ loadBalancers/kubernetes backendAddressPools/shop-local")
	w.checkDropped("endpoints that move", 2, localOwner+"-TCP-")
}

// addAndDelete creates a Service, and deletes one with the other controller's resources.
func (w *world) addAndDelete() {
	w.Helper()
	before := w.resourceParts(w.T)
	fresh := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fresh"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	w.must(cluster.Create(w.Context(), fresh))
	w.eventually("address of the new Service", func() error {
		w.must(cluster.Get(w.Context(), client.ObjectKeyFromObject(fresh), fresh))
		if len(fresh.Status.LoadBalancer.Ingress) != 1 {
			return errors.New("it has none")
		}
		return nil
	})
	owner := service.OwnerNameOf(string(fresh.UID))
	w.waitChanged(before, "a new Service",
		"+ loadBalancers/kubernetes frontendIPConfigurations/"+owner, "+ loadBalancers/kubernetes loadBalancingRules/"+owner+"-TCP-80",
		"+ loadBalancers/kubernetes probes/"+owner+"-TCP-80", "~ "+group+port80, "+ publicIPAddresses/kubernetes-"+owner)
	w.checkDropped("a new Service", 0)

	before = w.resourceParts(w.T)
	w.kubectl("delete", "service", "affinity", "--timeout=5m") // both finalizers are removed, or it times out
	w.waitChanged(before, "a Service that goes", "- loadBalancers/lb-1 backendAddressPools/default-affinity",
		"- loadBalancers/lb-1 frontendIPConfigurations/"+affinityOwner, "- loadBalancers/lb-1 loadBalancingRules/"+affinityOwner+"-TCP-80",
		"- loadBalancers/lb-1 probes/"+affinityOwner+"-TCP-22441", "~ "+group+port80, "- publicIPAddresses/kubernetes-"+affinityOwner)
	w.checkDropped("a Service that goes", 2, affinityOwner+"-TCP-80")
}

// removeWeir stops Weir and removes what it wrote to the cluster. also, if not nil, runs in between.
func (w *world) removeWeir(weir *process.Process, also func()) {
	w.Helper()
	out, code := w.weir("leave", "--kubeconfig", cluster.admin)
	if code != 1 || !strings.Contains(out, "weir runs, and would put everything back") {
		w.Errorf("while Weir runs: %d %s", code, out)
	}
	w.stop(weir)
	before, calls := w.resourceParts(w.T), len(w.Calls())
	mentions := func() int { return strings.Count(w.kubectl("get", "services,nodes", "-A", "-o", "yaml"), "weir.dev/") }
	there := mentions()
	if out, code := w.weir("leave", "--kubeconfig", cluster.admin, "--dry-run"); code != 0 || mentions() != there {
		w.Errorf("a dry run: %d %s", code, out)
	}
	if also != nil {
		also()
	}
	out, code = w.weir("leave", "--kubeconfig", cluster.admin)
	w.Logf("weir leave:\n%s", out)
	if code != 0 || !strings.HasSuffix(out, "Azure was not called.\n") {
		w.Errorf("weir leave ends with %d:\n%s", code, out)
	}
	if remaining := w.kubectl("get", "services,nodes", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.finalizers} {.metadata.annotations} {.metadata.labels}{end}"); strings.Contains(remaining, "weir.dev/") {
		w.Errorf("left: %s", remaining)
	}
	if pools := w.kubectl("get", "backendpools", "-A"); pools != "No resources found" {
		w.Errorf("left: %s", pools)
	}
	if n := len(w.Calls()); n != calls {
		w.Errorf("it called Azure %d times", n-calls)
	}
	w.waitChanged(before, "Weir has left")
	w.checkDropped("Weir has left", 0)
	if out, code := w.plan(); code != 0 {
		w.Errorf("the plan after it ends with %d:\n%s", code, out)
	}
}

// checkUnclaimed checks that Services that no other controller would manage stay Weir's
// and do not block the others.
func (w *world) checkUnclaimed() {
	w.Helper()
	classy, going := w.createBound("classy", "lb-1-internal", new("weir.dev/azure")), w.createBound("going", "lb-1", nil)
	w.must(cluster.Delete(w.Context(), going))
	out, code := w.weir("leave", "--kubeconfig", cluster.admin)
	for _, part := range []string{
		"Service shop/classy remains: it has the class weir.dev/azure", "Service shop/going remains: it is being deleted",
		"BackendPool weir-system/nodes.lb-1-internal remains: a Service that needs it remains",
		"BackendPool weir-system/nodes.kubernetes: deleted", "Weir let go of 20 Services, 9 BackendPools and 0 Nodes.", "not complete: 1 Service",
	} {
		if code != 1 || !strings.Contains(out, part) {
			w.Errorf("weir leave ends with %d, and does not say %q:\n%s", code, part, out)
		}
	}
	for _, s := range []*corev1.Service{classy, going} {
		w.must(cluster.Get(w.Context(), client.ObjectKeyFromObject(s), s))
		if !slices.Contains(s.Finalizers, metadata.ServiceFinalizer) || s.Annotations[metadata.PlaceAnnotation] == "" {
			w.Errorf("Service %s has %v and %v", s.Name, s.Finalizers, s.Annotations)
		}
		w.deleteObject(w.Context(), s)
	}
}

// createBound creates a Service that looks managed by Weir.
func (w *world) createBound(name, on string, class *string) *corev1.Service {
	w.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Finalizers: []string{metadata.ServiceFinalizer}, Annotations: map[string]string{metadata.PlaceAnnotation: on},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: class, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	w.must(cluster.Create(w.Context(), s))
	return s
}

// checkInherited starts Weir again with a Service that was deleted while no controller ran, and has only
// the other controller's finalizer.
func (w *world) checkInherited() {
	w.Helper()
	before := w.resourceParts(w.T)
	var fresh corev1.Service
	w.must(cluster.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "fresh"}, &fresh))
	owner := service.OwnerNameOf(string(fresh.UID))
	w.kubectl("patch", "service", "-n", "shop", "fresh", "--type=merge", `-p={"metadata":{"finalizers":["`+metadata.CleanupFinalizer+`"]}}`)
	w.kubectl("delete", "service", "-n", "shop", "fresh", "--wait=false")
	w.start()
	w.kubectl("wait", "--for=delete", "service/fresh", "-n", "shop", "--timeout=5m")
	w.waitChanged(before, "a Service that went in between",
		"- loadBalancers/kubernetes frontendIPConfigurations/"+owner, "- loadBalancers/kubernetes loadBalancingRules/"+owner+"-TCP-80",
		"- loadBalancers/kubernetes probes/"+owner+"-TCP-80", "~ "+group+port80, "- publicIPAddresses/kubernetes-"+owner)
	w.checkDropped("a Service that went in between", 2, owner+"-TCP-80")
}
