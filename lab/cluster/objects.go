// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/config/crd"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/k8s/metadata"
)

// createObjects creates the initial objects of the cluster and its Azure.
func (s *Stage) createObjects() error {
	for id, body := range map[string]string{
		vnetID: `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/48"]},"subnets":[
			{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/16","fd00::/64"]}}]}}`,
		securityGroup: `{"location":"eastus","properties":{"securityRules":[
			{"name":"ssh","properties":{"priority":300,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourceAddressPrefix":"198.51.100.7",
			"sourcePortRange":"*","destinationAddressPrefix":"*","destinationPortRange":"22"}}]}}`,
	} {
		if err := s.emulator.Put(id, []byte(body)); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	if err := s.createScaleSets(); err != nil {
		return err
	}
	text, err := crd.Files.ReadFile("weir.dev_backendpools.yaml") // this controller does not provision
	if err == nil {
		err = s.api.Install(text)
	}
	if err != nil {
		return fmt.Errorf("BackendPools: %w", err)
	}
	s.userClient, err = client.New(s.api.RESTConfig("people"), client.Options{Scheme: metadata.Scheme(), Mapper: newRESTMapper()})
	if err != nil {
		return err
	}
	for _, name := range []string{weirNamespace, "shop", "blog"} {
		if err := s.userClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// ctx is the context of user requests, which have no deadline.
var ctx = context.Background()

// newRESTMapper returns the REST mapper for the kinds that users write.
func newRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("Service"):            meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Node"):               meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Namespace"):          meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Pod"):                meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Event"):              meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):          meta.RESTScopeNamespace,
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"): meta.RESTScopeNamespace,
		v1alpha1.GroupVersion.WithKind("BackendPool"):            meta.RESTScopeNamespace,
	} {
		m.Add(kind, scope)
	}
	return m
}

// AddNode adds a node; its address is derived from its number.
func (s *Stage) AddNode(number int) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(number), Labels: map[string]string{"kubernetes.io/hostname": nodeName(number)}}}
	n.Spec.ProviderID = "azure://" + s.machineID(number)
	if err := s.createMachine(number); err != nil {
		return err
	}
	v4, v6 := nodeAddresses(number)
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: v4},
		{Type: corev1.NodeInternalIP, Address: v6},
		{Type: corev1.NodeHostName, Address: n.Name},
	}
	status := n.Status
	if err := s.userClient.Create(ctx, n); err != nil {
		return err
	}
	for _, a := range status.Addresses {
		delete(s.deletedAddresses, a.Address)
	}
	n.Status = status
	return s.userClient.Status().Update(ctx, n)
}

func nodeName(number int) string { return fmt.Sprintf("node-%d", number) }

// ChangeNode edits a node.
func (s *Stage) ChangeNode(number int, edit func(*corev1.Node)) error {
	n := &corev1.Node{}
	return s.editObject(n, client.ObjectKey{Name: nodeName(number)}, func() { edit(n); s.recordTaintsCleared(n) })
}

// ChangeNamespace edits a namespace.
func (s *Stage) ChangeNamespace(name string, edit func(*corev1.Namespace)) error {
	n := &corev1.Namespace{}
	return s.editObject(n, client.ObjectKey{Name: name}, func() { edit(n) })
}

// DeleteNode deletes a node and its endpoints.
func (s *Stage) DeleteNode(number int) error {
	list := &discoveryv1.EndpointSliceList{}
	if err := s.userClient.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		slice := &list.Items[i]
		err := s.editObject(slice, client.ObjectKeyFromObject(slice), func() {
			slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.NodeName == nodeName(number) })
		})
		if err != nil {
			return err
		}
	}
	n := &corev1.Node{}
	if err := s.userClient.Get(ctx, client.ObjectKey{Name: nodeName(number)}, n); err != nil {
		return err
	}
	for _, a := range n.Status.Addresses {
		s.deletedAddresses[a.Address] = s.processCount()
	}
	return errors.Join(s.userClient.Delete(ctx, n), s.deleteMachine(number))
}

// processCount returns the number of processes started so far.
func (s *Stage) processCount() int {
	n := 0
	for _, r := range s.replicas {
		n += int(r.processCount.Load())
	}
	return n
}

// editObject edits an object and retries on conflict.
func (s *Stage) editObject(o client.Object, at client.ObjectKey, edit func()) error {
	for {
		if err := s.userClient.Get(ctx, at, o); err != nil {
			return err
		}
		edit()
		if err := s.userClient.Update(ctx, o); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// parseKey parses a namespace/name key.
func parseKey(key string) client.ObjectKey {
	for i := range key {
		if key[i] == '/' {
			return client.ObjectKey{Namespace: key[:i], Name: key[i+1:]}
		}
	}
	return client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: key}
}

// AddService creates a Service for Weir and its empty EndpointSlice.
func (s *Stage) AddService(key string, edit func(*corev1.Service)) error {
	at := parseKey(key)
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(app.LoadBalancerClass), Selector: map[string]string{"app": at.Name},
			Ports: []corev1.ServicePort{{Name: "tcp-80", Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	}
	if edit != nil {
		edit(svc)
	}
	if err := s.userClient.Create(ctx, svc); err != nil {
		return err
	}
	s.serviceOwners[ownerName(svc)] = key
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: at.Namespace, Name: sliceName(at.Name, family), Labels: map[string]string{discoveryv1.LabelServiceName: at.Name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: at.Name, UID: svc.UID}},
			},
			AddressType: family,
		}
		if err := s.userClient.Create(ctx, slice); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func sliceName(service string, family discoveryv1.AddressType) string {
	return service + "-" + map[discoveryv1.AddressType]string{discoveryv1.AddressTypeIPv4: "4", discoveryv1.AddressTypeIPv6: "6"}[family]
}

// ChangeService edits a Service.
func (s *Stage) ChangeService(key string, edit func(*corev1.Service)) error {
	svc := &corev1.Service{}
	return s.editObject(svc, parseKey(key), func() { edit(svc) })
}

// DeleteService deletes a Service.
func (s *Stage) DeleteService(key string) error {
	at := parseKey(key)
	return s.userClient.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}})
}

// SetEndpoints sets the nodes with endpoints of a Service, and whether each endpoint is ready.
func (s *Stage) SetEndpoints(key string, on map[int]bool) error {
	at := parseKey(key)
	var failed []error
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{}
		failed = append(failed, s.editObject(slice, client.ObjectKey{Namespace: at.Namespace, Name: sliceName(at.Name, family)}, func() {
			slice.Endpoints = nil
			for _, number := range slices.Sorted(maps.Keys(on)) {
				address := fmt.Sprintf("10.244.%d.9", number)
				if family == discoveryv1.AddressTypeIPv6 {
					address = fmt.Sprintf("fd01::%x:9", number)
				}
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{address}, NodeName: new(nodeName(number)), Conditions: discoveryv1.EndpointConditions{Ready: new(on[number])},
				})
			}
		}))
	}
	return errors.Join(failed...)
}

// ChangePool edits a BackendPool.
func (s *Stage) ChangePool(key string, edit func(*v1alpha1.BackendPool)) error {
	p := &v1alpha1.BackendPool{}
	return s.editObject(p, parseKey(key), func() { edit(p) })
}

// AddPool creates a BackendPool.
func (s *Stage) AddPool(p *v1alpha1.BackendPool) error { return s.userClient.Create(ctx, p) }

// DeletePool deletes a BackendPool and its record of Weir's members.
func (s *Stage) DeletePool(key string) error {
	p := &v1alpha1.BackendPool{}
	if err := s.userClient.Get(ctx, parseKey(key), p); err != nil {
		return err
	}
	s.forgetForeign(poolKey(p))
	return s.userClient.Delete(ctx, p)
}
