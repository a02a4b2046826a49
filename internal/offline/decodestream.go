// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"errors"
	"io"

	yamlnode "go.yaml.in/yaml/v3"
)

// ErrTrailingText means text follows the end of a document, which would be ignored.
var ErrTrailingText = errors.New("text follows the end of the document: a line --- begins another one, also in JSON")

// checkSingleDocument returns ErrTrailingText if text follows a YAML document, and no other errors.
func checkSingleDocument(document []byte) error {
	var node yamlnode.Node
	reads := yamlnode.NewDecoder(bytes.NewReader(document))
	if reads.Decode(&node) != nil || errors.Is(reads.Decode(&node), io.EOF) {
		return nil
	}
	return ErrTrailingText
}
