// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
)

// One name per line.
const keyPublicIPGroups = "public-ip-groups"

// maxPublicIPGroups is Azure's limit of resource groups per subscription, rounded up.
const maxPublicIPGroups = 1000

// PublicIPGroups stores the other resource groups in which Weir creates public IPs. It implements publicip.GroupStore.
type PublicIPGroups struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
}

// ReadGroups implements publicip.GroupStore.
func (p PublicIPGroups) ReadGroups(ctx context.Context) ([]string, error) {
	r, err := Read(ctx, p.Reader, p.Namespace)
	if err != nil {
		return nil, err
	}
	return parsePublicIPGroups(r), nil
}

func parsePublicIPGroups(r Record) []string {
	if r.object == nil {
		return nil
	}
	return strings.Fields(r.object.Data[keyPublicIPGroups])
}

// ChangeGroups implements publicip.GroupStore.
func (p PublicIPGroups) ChangeGroups(ctx context.Context, add, remove []string) error {
	for range maxTries {
		r, err := Read(ctx, p.Reader, p.Namespace)
		if err != nil {
			return err
		}
		groups := slices.DeleteFunc(slices.Concat(parsePublicIPGroups(r), add), func(name string) bool { return slices.Contains(remove, name) })
		slices.Sort(groups)
		if groups = slices.Compact(groups); len(groups) > maxPublicIPGroups {
			return fmt.Errorf("ConfigMap %s, key %s, would have %d resource groups, and may have %d", metadata.Key(p.Namespace, Name), keyPublicIPGroups, len(groups), maxPublicIPGroups)
		}
		text := ""
		if len(groups) > 0 {
			text = strings.Join(groups, "\n") + "\n"
		}
		err = r.writeKeys(ctx, p.Writer, map[string]string{keyPublicIPGroups: text})
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", metadata.Key(p.Namespace, Name))
}
