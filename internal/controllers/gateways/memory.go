// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
)

// ReconcileAll reconciles each Gateway of objects once, the oldest first, and writes only to objects. It returns what
// the statuses report as a problem.
func ReconcileAll(ctx context.Context, c Config, objects []client.Object) (r *Reconciler, problems []string, err error) {
	m := newMemory(objects)
	c.Reader, c.Writer, c.Status = m, m, statusWriter{memory: m}
	r = New(c)
	r.objects.cached, r.objects.view = m, c.View
	r.objects.hasTLSRoutes.Store(true)
	var list gatewayv1.GatewayList
	if err := m.List(ctx, &list); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(list.Items, func(a, b gatewayv1.Gateway) int { return routing.ComparePrecedence(&a, &b) })
	foreign := map[gatewayv1.ObjectName][]string{} // by class
	for i := range list.Items {
		name, class := client.ObjectKeyFromObject(&list.Items[i]), list.Items[i].Spec.GatewayClassName
		switch served, exists, err := r.objects.hasClass(ctx, &list.Items[i]); {
		case err != nil:
			return nil, nil, err
		case exists && !served && !hasFinalizer(&list.Items[i]):
			foreign[class] = append(foreign[class], name.String())
		case !exists:
			problems = append(problems, fmt.Sprintf("Gateway %s is not planned: its GatewayClass %s is missing", name, class))
		}
		if _, err := r.reconcileGateway(ctx, name); err != nil {
			return nil, nil, fmt.Errorf("reconciling Gateway %s: %w", name, err)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(foreign)) {
		problems = append(problems, fmt.Sprintf("%s of GatewayClass %s not planned, because another controller serves the class: %s",
			humanize.FormatCount(len(foreign[class]), "Gateway"), class, humanize.FormatList(foreign[class], maxListed)))
	}
	return r, append(problems, m.listProblems()...), nil
}

// maxListed limits the Gateways of a class that are named.
const maxListed = 5

// memory is an API client of objects in memory, with the indexes of the cache.
type memory struct {
	client.Writer // only what the Reconciler uses
	scheme        *runtime.Scheme
	objects       map[string]map[types.NamespacedName]client.Object // by kind
	usedPorts     map[int32]bool
	nextPort      int32
}

// firstCopyPort replaces the first node port that the API server would allocate for a copy.
const firstCopyPort = 32100

func newMemory(objects []client.Object) *memory {
	m := &memory{scheme: metadata.Scheme(), objects: map[string]map[types.NamespacedName]client.Object{}, usedPorts: map[int32]bool{}, nextPort: firstCopyPort}
	for _, obj := range objects {
		m.store(obj)
		if s, ok := obj.(*corev1.Service); ok {
			m.usedPorts[s.Spec.HealthCheckNodePort] = true
			for _, p := range s.Spec.Ports {
				m.usedPorts[p.NodePort] = true
			}
		}
	}
	return m
}

func (m *memory) kindOf(obj runtime.Object) string {
	kind, err := apiutil.GVKForObject(obj, m.scheme)
	if err != nil {
		panic(err) // the types are known
	}
	return strings.TrimSuffix(kind.Kind, "List")
}

func (m *memory) store(obj client.Object) {
	kind := m.kindOf(obj)
	if m.objects[kind] == nil {
		m.objects[kind] = map[types.NamespacedName]client.Object{}
	}
	m.objects[kind][client.ObjectKeyFromObject(obj)] = obj
}

// listKind returns the objects of a kind in the order of their names.
func (m *memory) listKind(kind string) []client.Object {
	objects := make([]client.Object, 0, len(m.objects[kind]))
	for _, obj := range m.objects[kind] {
		objects = append(objects, obj)
	}
	slices.SortFunc(objects, func(a, b client.Object) int {
		return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
	})
	return objects
}

// Get implements client.Reader.
func (m *memory) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := m.kindOf(into)
	obj, found := m.objects[kind][name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader.
func (m *memory) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var found []runtime.Object
	for _, obj := range m.listKind(m.kindOf(into)) {
		if (options.Namespace == "" || obj.GetNamespace() == options.Namespace) && hasIndexKey(obj, options) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

func hasIndexKey(obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, want := range options.FieldSelector.Requirements() {
		keys := copyKeys(obj)
		if route, ok := routing.RouteOf(obj); ok {
			keys = gatewayKeys(route)
		}
		if want.Field != byGateway || !slices.Contains(keys, want.Value) {
			return false
		}
	}
	return true
}

// Create implements client.Writer. It allocates the node ports of a copy.
func (m *memory) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if s, ok := obj.(*corev1.Service); ok {
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = m.allocatePort()
		}
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			s.Spec.HealthCheckNodePort = m.allocatePort()
		}
	}
	m.store(obj)
	return nil
}

func (m *memory) allocatePort() int32 {
	for m.usedPorts[m.nextPort] {
		m.nextPort++
	}
	m.usedPorts[m.nextPort] = true
	return m.nextPort
}

// Patch implements client.Writer. The object is already changed.
func (m *memory) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	next, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("patch: %T is no object", obj)
	}
	m.store(next)
	return nil
}

// Delete implements client.Writer.
func (m *memory) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	delete(m.objects[m.kindOf(obj)], client.ObjectKeyFromObject(obj))
	return nil
}

type statusWriter struct {
	client.SubResourceWriter // only Patch is supported
	memory                   *memory
}

// Patch implements client.SubResourceWriter.
func (s statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.memory.Patch(ctx, obj, patch)
}

// listProblems returns the conditions of Gateways, listeners and routes that stop connections.
func (m *memory) listProblems() (problems []string) {
	for _, obj := range m.listKind(string(routing.KindGateway)) {
		gw, ok := obj.(*gatewayv1.Gateway)
		if !ok {
			continue
		}
		name := "Gateway " + client.ObjectKeyFromObject(gw).String()
		if c := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionAccepted)); c != nil && c.Status == metav1.ConditionFalse {
			problems = append(problems, formatProblem(name, *c))
		}
		for _, l := range gw.Status.Listeners {
			for _, c := range l.Conditions {
				if c.Status == metav1.ConditionFalse && (c.Type == string(gatewayv1.ListenerConditionResolvedRefs) || c.Type == string(gatewayv1.ListenerConditionProgrammed) && c.Reason == string(gatewayv1.ListenerReasonInvalid)) {
					problems = append(problems, formatProblem(name+" listener "+string(l.Name), c))
				}
			}
		}
	}
	for _, kind := range []gatewayv1.Kind{routing.KindTCPRoute, routing.KindUDPRoute, routing.KindTLSRoute} {
		for _, obj := range m.listKind(string(kind)) {
			route, _ := routing.RouteOf(obj)
			for _, st := range route.Statuses {
				for _, c := range st.Conditions {
					if st.ControllerName == routing.ControllerName && c.Status == metav1.ConditionFalse {
						problems = append(problems, formatProblem(string(kind)+" "+client.ObjectKeyFromObject(obj).String(), c))
					}
				}
			}
		}
	}
	return problems
}

func formatProblem(name string, c metav1.Condition) string {
	return fmt.Sprintf("%s is %s=False, %s: %s", name, c.Type, c.Reason, c.Message)
}
