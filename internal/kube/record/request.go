// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/migrate"
)

const keyRequests = "basic-to-standard-asked"

// MigrationRequests returns the user's requests for the migration.
func (r Record) MigrationRequests() migrate.UserRequests {
	if r.object == nil {
		return migrate.UserRequests{}
	}
	return migrate.ParseUserRequests(r.object.Data[keyRequests])
}

// UpdateRequests updates the user's requests, retrying on conflict. An error of ask writes nothing.
func UpdateRequests(ctx context.Context, api client.Client, namespace string, ask func(Record) (migrate.UserRequests, error)) error {
	for range maxTries {
		r, err := Read(ctx, api, namespace)
		if err != nil {
			return err
		}
		if r.object == nil {
			return fmt.Errorf("there is no ConfigMap %s: no Weir has run there; --namespace says where it does", view.Key(namespace, Name))
		}
		next, err := ask(r)
		if err != nil {
			return err
		}
		text := migrate.FormatUserRequests(next)
		if text == r.object.Data[keyRequests] {
			return nil
		}
		err = r.writeKeys(ctx, api, map[string]string{keyRequests: text})
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", view.Key(namespace, Name))
}
