// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// maxTableSize keeps a ConfigMap below the API server's limit of 1 MiB: about 5,000 public IPs or
// 3,500 private addresses.
const maxTableSize = 900 << 10

// table is one key of a ConfigMap, with one entry per line.
type table struct{ namespace, name, key string }

// readTable returns the table's version, empty if the ConfigMap does not exist.
func (t table) readTable(ctx context.Context, r client.Reader, parse func(text string) error) (version string, err error) {
	m := t.newConfigMap("")
	err = r.Get(ctx, client.ObjectKeyFromObject(m), m)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", t.wrapError(err)
	}
	if err := parse(m.Data[t.key]); err != nil {
		return "", fmt.Errorf("ConfigMap %s, key %s, %w; to start with an empty record, delete the ConfigMap", metadata.Key(t.namespace, t.name), t.key, err)
	}
	return m.ResourceVersion, nil
}

// writeTable returns the table's new version. It recreates a deleted ConfigMap.
func (t table) writeTable(ctx context.Context, w client.Writer, version, text, entries, remedy string) (string, error) {
	if len(text) > maxTableSize {
		return "", fmt.Errorf("ConfigMap %s would have %d bytes for %s, and the maximum is %d: %s", metadata.Key(t.namespace, t.name), len(text), entries, maxTableSize, remedy)
	}
	m := t.newConfigMap(version)
	m.Data = map[string]string{t.key: text}
	if version != "" {
		err := w.Update(ctx, m, client.FieldOwner(k8s.FieldOwner))
		if !apierrors.IsNotFound(err) {
			return m.ResourceVersion, t.wrapError(err)
		}
		m.ResourceVersion = ""
	}
	err := w.Create(ctx, m, client.FieldOwner(k8s.FieldOwner))
	return m.ResourceVersion, t.wrapError(err)
}

func (t table) newConfigMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name, ResourceVersion: version}}
}

func (t table) wrapError(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("apply config/rbac (kubectl apply --server-side -k config): its Role weir-record allows the ConfigMap %s: %w", metadata.Key(t.namespace, t.name), err)
	}
	return fmt.Errorf("ConfigMap %s: %w", metadata.Key(t.namespace, t.name), err)
}
