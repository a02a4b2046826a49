// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
)

const (
	// PublicIPsName is the ConfigMap, in Weir's own namespace, of the namespaces that own public IPs. It
	// is apart from Name: it grows with the number of public IPs.
	PublicIPsName = "weir-public-ips"
	keyOwners     = "owners"
	// maxOwnersSize keeps the ConfigMap below the 1 MiB that an API server takes: about 5,000 public IPs, or 3,500
	// private addresses.
	maxOwnersSize = 900 << 10
)

// PublicIPOwners keeps the owners of public IPs in the ConfigMap PublicIPsName, one in a line: id,
// namespace, time. It implements publicip.OwnerStore.
type PublicIPOwners struct {
	Reader client.Reader
	// Writer has to be one of the leader alone.
	Writer    client.Writer
	Namespace string
}

// ReadOwners implements publicip.OwnerStore.
func (p PublicIPOwners) ReadOwners(ctx context.Context) (publicip.OwnerRecord, error) {
	m := p.object("")
	err := p.Reader.Get(ctx, client.ObjectKeyFromObject(m), m)
	if apierrors.IsNotFound(err) {
		return publicip.OwnerRecord{}, nil
	}
	if err != nil {
		return publicip.OwnerRecord{}, explain(p.Namespace, PublicIPsName, err)
	}
	owners, err := parseOwners(m.Data[keyOwners])
	if err != nil {
		return publicip.OwnerRecord{}, fmt.Errorf("ConfigMap %s, key %s, %w; to start with an empty record, delete the ConfigMap", view.Key(p.Namespace, PublicIPsName), keyOwners, err)
	}
	return publicip.OwnerRecord{Version: m.ResourceVersion, Owners: owners}, nil
}

// WriteOwners implements publicip.OwnerStore. A ConfigMap that was deleted since it was read is created.
func (p PublicIPOwners) WriteOwners(ctx context.Context, r publicip.OwnerRecord) (string, error) {
	m := p.object(r.Version)
	text := formatOwners(r.Owners)
	if len(text) > maxOwnersSize {
		return "", fmt.Errorf("ConfigMap %s would hold %d bytes for %d public IPs, and takes %d: delete public IPs that are not used",
			view.Key(p.Namespace, PublicIPsName), len(text), len(r.Owners), maxOwnersSize)
	}
	m.Data = map[string]string{keyOwners: text}
	return write(ctx, p.Writer, m)
}

// write updates a ConfigMap, or creates one without a version, and returns the new version.
func write(ctx context.Context, w client.Writer, m *corev1.ConfigMap) (version string, err error) {
	if m.ResourceVersion != "" {
		err := w.Update(ctx, m, client.FieldOwner(apiserver.FieldOwner))
		if !apierrors.IsNotFound(err) {
			return m.ResourceVersion, explain(m.Namespace, m.Name, err)
		}
		m.ResourceVersion = ""
	}
	err = w.Create(ctx, m, client.FieldOwner(apiserver.FieldOwner))
	return m.ResourceVersion, explain(m.Namespace, m.Name, err)
}

func (p PublicIPOwners) object(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: PublicIPsName, ResourceVersion: version}}
}

func explain(namespace, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("apply config/rbac (kubectl apply --server-side -k config): its Role weir-record allows the ConfigMap %s: %w", view.Key(namespace, name), err)
	}
	return fmt.Errorf("ConfigMap %s: %w", view.Key(namespace, name), err)
}

func parseOwners(text string) (map[string]publicip.Owner, error) {
	owners := map[string]publicip.Owner{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %d is %.200q: want the id of a public IP, a namespace and a time", number, line)
		}
		id, err := lb.ParseResourceID(fields[0], lb.TypePublicIP)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		since, err := time.Parse(time.RFC3339, fields[2])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		owners[id.Key()] = publicip.Owner{Namespace: fields[1], Since: since.UTC()}
	}
	return owners, nil
}

func formatOwners(owners map[string]publicip.Owner) string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		fmt.Fprintf(&text, "%s %s %s\n", id, owners[id].Namespace, owners[id].Since.UTC().Format(time.RFC3339))
	}
	return text.String()
}
