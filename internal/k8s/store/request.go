// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/skumigration/phase"
)

const keyRequests = "basic-to-standard-asked"

// MigrationRequests returns the user's requests for the migration.
func (r Record) MigrationRequests() phase.UserRequests {
	if r.object == nil {
		return phase.UserRequests{}
	}
	return phase.ParseUserRequests(r.object.Data[keyRequests])
}

// UpdateRequests updates the user's requests, retrying on conflict. An error of ask writes nothing.
func UpdateRequests(ctx context.Context, api client.Client, namespace string, ask func(Record) (phase.UserRequests, error)) error {
	for range maxTries {
		r, err := Read(ctx, api, namespace)
		if err != nil {
			return err
		}
		if r.object == nil {
			return fmt.Errorf("there is no ConfigMap %s: no Weir has run there; set --namespace to its namespace", metadata.Key(namespace, Name))
		}
		next, err := ask(r)
		if err != nil {
			return err
		}
		text := phase.FormatUserRequests(next)
		if text == r.object.Data[keyRequests] {
			return nil
		}
		err = r.writeKeys(ctx, api, map[string]string{keyRequests: text})
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", metadata.Key(namespace, Name))
}
