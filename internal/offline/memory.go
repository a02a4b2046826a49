// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
)

var deletionTime = metav1.NewTime(time.Unix(0, 0).UTC())

// memoryClient is an in-memory API client. Delete only sets the deletion timestamp, as for objects with a
// finalizer.
type memoryClient struct {
	client.Reader // List is not supported
	client.Writer // Update is not supported
	stores        map[reflect.Type]toolscache.Indexer
	created       int
}

func newMemory(snap *cache.Snapshot) *memoryClient {
	return &memoryClient{stores: map[reflect.Type]toolscache.Indexer{
		reflect.TypeFor[*discoveryv1.EndpointSlice](): snap.Slices,
		reflect.TypeFor[*corev1.Service]():            snap.Services,
		reflect.TypeFor[*corev1.Node]():               snap.Nodes,
		reflect.TypeFor[*v1alpha1.BackendPool]():      snap.Pools,
		reflect.TypeFor[*corev1.Namespace]():          snap.Namespaces,
	}}
}

func (m *memoryClient) getObject(like client.Object) (current client.Object, err error) {
	name, err := toolscache.MetaNamespaceKeyFunc(like)
	if err != nil {
		return nil, err
	}
	obj, found, err := m.stores[reflect.TypeOf(like)].GetByKey(name)
	if current, ok := obj.(client.Object); ok && found && err == nil {
		return current, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: reflect.TypeOf(like).Elem().Name()}, like.GetName())
}

func (m *memoryClient) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetNamespace(name.Namespace)
	into.SetName(name.Name)
	obj, err := m.getObject(into)
	if err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
	if into.GetResourceVersion() == "" { // objects from files have none, and a patch may need one
		into.SetResourceVersion("1")
	}
	return nil
}

func (m *memoryClient) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if _, err := m.getObject(obj); err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: reflect.TypeOf(obj).Elem().Name()}, obj.GetName())
	}
	m.created++
	obj.SetUID(types.UID(fmt.Sprintf("planned-%d", m.created)))
	return m.stores[reflect.TypeOf(obj)].Add(obj)
}

func (m *memoryClient) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	current, err := m.getObject(obj)
	if err != nil {
		return err
	}
	next, ok := current.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("deleting %s: %T is no object", obj.GetName(), current)
	}
	next.SetDeletionTimestamp(&deletionTime)
	return m.stores[reflect.TypeOf(obj)].Update(next)
}

func (m *memoryClient) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	current, err := m.getObject(obj)
	if err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	before, err := json.Marshal(current)
	if err != nil {
		return err
	}
	after, err := applyPatch(before, data, patch.Type(), current)
	if err != nil {
		return err
	}
	next, ok := reflect.New(reflect.TypeOf(current).Elem()).Interface().(client.Object)
	if !ok {
		return fmt.Errorf("patching %s: %T is no object", obj.GetName(), current)
	}
	if err := json.Unmarshal(after, next); err != nil {
		return err
	}
	return m.stores[reflect.TypeOf(current)].Update(next)
}

func applyPatch(before, data []byte, kind types.PatchType, like client.Object) ([]byte, error) {
	if kind == types.StrategicMergePatchType {
		return strategicpatch.StrategicMergePatch(before, data, like)
	}
	return jsonpatch.MergePatch(before, data)
}

type statusWriter struct {
	client.SubResourceWriter // only Patch is supported
	memory                   *memoryClient
}

func (s statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.memory.Patch(ctx, obj, patch)
}
