// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decodeStrict rejects unknown and duplicate fields.
func decodeStrict(doc []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(doc, into)
	if err != nil {
		return err
	}
	return joinMessages(strict)
}

// joinErrors joins errors of an object; nil if there are none.
func joinErrors(errs field.ErrorList) error {
	all := make([]error, len(errs))
	for i, w := range errs {
		all[i] = w
	}
	return joinMessages(all)
}

const (
	// Values may be large, so an object's errors are limited in number and length.
	maxErrors      = 10
	maxErrorLength = 300
)

func joinMessages(all []error) error {
	if len(all) == 0 {
		return nil
	}
	var texts []string
	for _, err := range all[:min(len(all), maxErrors)] {
		text := []rune(err.Error())
		if len(text) > maxErrorLength {
			text = append(text[:maxErrorLength], '…')
		}
		texts = append(texts, string(text))
	}
	if len(all) > maxErrors {
		texts = append(texts, "and more")
	}
	return errors.New(strings.Join(texts, "; "))
}
