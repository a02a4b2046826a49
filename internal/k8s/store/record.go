// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// Name is the ConfigMap of the record. A wrong record keeps Weir from starting.
const Name = "weir-controller"

const (
	keyCluster = "cluster-name"
	keyPlace   = "load-balancers"
)

// Record is the stored record of this cluster's Weir.
type Record struct {
	// Namespace is Weir's namespace.
	Namespace string
	// ClusterName is the cluster's name in Azure, Place the ARM ID of its load balancers' resource
	// group.
	ClusterName, Place string

	object *corev1.ConfigMap // nil if there is none
}

// Read returns the record of a namespace, which may be empty.
func Read(ctx context.Context, from client.Reader, namespace string) (Record, error) {
	m := &corev1.ConfigMap{}
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, m)
	if apierrors.IsNotFound(err) {
		return Record{Namespace: namespace}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("ConfigMap %s: %w", metadata.Key(namespace, Name), err)
	}
	return Record{Namespace: namespace, ClusterName: m.Data[keyCluster], Place: m.Data[keyPlace], object: m}, nil
}

// CheckConflict returns why Weir must not start with another name or place.
func (r Record) CheckConflict(cluster, place string) error {
	problem, remedy := "", ""
	switch {
	case r.ClusterName != "" && r.ClusterName != cluster:
		problem = fmt.Sprintf("--cluster-name %q: this cluster's load balancers and public IPs are recorded under the name %q", cluster, r.ClusterName)
		remedy = fmt.Sprintf("Set --cluster-name %q", r.ClusterName)
	case r.Place != "" && !strings.EqualFold(r.Place, place):
		problem = fmt.Sprintf("azure.json has load balancers in %s: this cluster's are recorded in %s", place, r.Place)
		remedy = "Set subscriptionId and loadBalancerResourceGroup, or resourceGroup, back"
	default:
		return nil
	}
	return &ConflictError{fmt.Sprintf("%s (ConfigMap %s). Weir would make new ones, with new addresses, and leave the old ones without endpoints. "+
		"%s; to give up what is there, delete its Services first, or delete the ConfigMap to start all the same",
		problem, metadata.Key(r.Namespace, Name), remedy)}
}

// ConflictError means the configuration differs from the record.
type ConflictError struct{ Message string }

// Error implements error.
func (e *ConflictError) Error() string { return e.Message }

// Check returns a ConflictError if the record differs, unless no Service uses Azure. It writes
// nothing, so any replica can call it.
func Check(ctx context.Context, reader client.Reader, namespace, cluster, place string) error {
	_, err := readChecked(ctx, reader, namespace, cluster, place)
	return err
}

// CheckAndStore is Check, and records name and place before anything is created. Of two concurrent writers
// that differ, the second gets the error.
func CheckAndStore(ctx context.Context, reader client.Reader, writer client.Writer, namespace, cluster, place string) error {
	r, err := readChecked(ctx, reader, namespace, cluster, place)
	for range maxTries {
		if err != nil || r.isRecorded(cluster, place) {
			return err
		}
		if err = r.writeCluster(ctx, writer, cluster, place); err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("ConfigMap %s: %w", metadata.Key(namespace, Name), err)
		}
		if r, err = Read(ctx, reader, namespace); err == nil { // a concurrent writer wins
			err = r.CheckConflict(cluster, place)
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", metadata.Key(namespace, Name))
}

const maxTries = 5

func readChecked(ctx context.Context, reader client.Reader, namespace, cluster, place string) (Record, error) {
	r, err := Read(ctx, reader, namespace)
	if err != nil {
		return Record{}, err
	}
	if conflict := r.CheckConflict(cluster, place); conflict != nil {
		if isBound, err := hasBoundService(ctx, reader); err != nil || isBound {
			return Record{}, cmp.Or(err, conflict)
		}
	}
	return r, nil
}

func (r Record) isRecorded(cluster, place string) bool {
	return r.ClusterName != "" && r.Place != "" && r.CheckConflict(cluster, place) == nil
}

func hasBoundService(ctx context.Context, reader client.Reader) (bool, error) {
	var services metav1.PartialObjectMetadataList
	services.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
	if err := reader.List(ctx, &services); err != nil {
		return false, fmt.Errorf("reading Services: %w", err)
	}
	return slices.ContainsFunc(services.Items, func(s metav1.PartialObjectMetadata) bool {
		return slices.Contains(s.Finalizers, metadata.ServiceFinalizer)
	}), nil
}

func (r Record) writeCluster(ctx context.Context, writer client.Writer, cluster, place string) error {
	return r.writeKeys(ctx, writer, map[string]string{keyCluster: cluster, keyPlace: place})
}

func (r Record) writeKeys(ctx context.Context, writer client.Writer, data map[string]string) error {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: Name}}
	if r.object != nil {
		m = r.object.DeepCopy()
	}
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	maps.Copy(m.Data, data)
	if r.object != nil {
		return writer.Update(ctx, m, client.FieldOwner(k8s.FieldOwner))
	}
	return writer.Create(ctx, m, client.FieldOwner(k8s.FieldOwner))
}
