package openstack

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxValue limits the size of one object in a list, and of a response that is no
// list, in bytes. The largest object of a cloud has some kilobytes.
const maxValue = 1 << 20

// stream decodes a response value by value, so that its size in memory is that of
// its largest value.
type stream struct {
	decoder *json.Decoder
	source  *limitedReader
}

// newStream returns a stream of at most a number of bytes.
func newStream(body io.Reader, limit int64) *stream {
	source := &limitedReader{reader: body, limit: limit}
	return &stream{json.NewDecoder(source), source}
}

// limitedReader returns an error if more is read than allowed.
type limitedReader struct {
	reader         io.Reader
	read           int64
	allowed, limit int64 // for the current value, and in total
}

var errLongValue = unusable("it has a value of more than %d bytes", maxValue)

func (r *limitedReader) Read(p []byte) (int, error) {
	switch {
	case r.read >= r.limit:
		return 0, &http.MaxBytesError{Limit: r.limit}
	case r.read >= r.allowed:
		return 0, errLongValue
	}
	n, err := r.reader.Read(p[:min(int64(len(p)), r.allowed-r.read, r.limit-r.read)])
	r.read += int64(n)
	return n, err
}

// size returns the number of bytes that were read.
func (s *stream) size() int64 { return s.source.read }

// allow lets the next value have its size. Every call of the decoder needs it.
func (s *stream) allow() *json.Decoder {
	s.source.allowed = s.decoder.InputOffset() + maxValue
	return s.decoder
}

// object calls field for each key of an object, to read its value.
func (s *stream) object(field func(key string) error) error {
	if err := s.delimiter('{'); err != nil {
		return err
	}
	for s.allow().More() {
		token, err := s.allow().Token()
		if err != nil {
			return complete(err)
		}
		key, _ := token.(string) // the decoder accepts no other keys
		if err := field(key); err != nil {
			return err
		}
	}
	return s.delimiter('}')
}

// array calls add for each value of a list. The value is valid until add returns.
func (s *stream) array(kind string, add func(json.RawMessage) error) error {
	if err := s.delimiter('['); err != nil {
		if errors.Is(err, errWrongForm) {
			return unusable("it has no list of %s", kind)
		}
		return err
	}
	var raw json.RawMessage
	for s.allow().More() {
		if err := s.value(&raw); err != nil {
			return err
		}
		if err := add(raw); err != nil {
			return err
		}
	}
	return s.delimiter(']')
}

// value reads the next value.
func (s *stream) value(raw *json.RawMessage) error { return complete(s.allow().Decode(raw)) }

var errWrongForm = unusable("it is not the JSON of an OpenStack service")

func (s *stream) delimiter(want json.Delim) error {
	token, err := s.allow().Token()
	switch {
	case err != nil:
		return complete(err)
	case token != want:
		return errWrongForm
	}
	return nil
}

// complete turns the end of a response into an error, because the value is not
// complete.
func complete(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// closeBody reads what little is left of a response, to reuse the connection.
func closeBody(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
