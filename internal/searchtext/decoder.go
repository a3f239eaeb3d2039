package searchtext

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// decode adds the text of data, as read does, with the decoder only.
func (r *Reader) decode(data jsontext.Value, free bool) error {
	r.dec.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	return r.decodeValue(free)
}

func (r *Reader) decodeValue(free bool) error {
	token, err := r.dec.ReadToken()
	if err != nil {
		return invalidText(err)
	}
	switch token.Kind() {
	case jsontext.KindString:
		r.add([]byte(token.String()))
	case jsontext.KindNumber:
		if free {
			r.add([]byte(token.String()))
		}
	case jsontext.KindBeginObject:
		return r.decodeObject(free)
	case jsontext.KindBeginArray:
		return r.decodeArray(free)
	}
	return nil
}

func invalidText(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", event.ErrInvalidData, err)
	}
	return err
}

func (r *Reader) decodeArray(free bool) error {
	for r.dec.PeekKind() != jsontext.KindEndArray {
		if err := r.decodeValue(free); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return invalidText(err)
}

func (r *Reader) decodeObject(free bool) error {
	var body attachment
	for r.dec.PeekKind() != jsontext.KindEndObject {
		token, err := r.dec.ReadToken()
		if err != nil {
			return invalidText(err)
		}
		if err := r.decodeMember(token.String(), free, &body); err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return invalidText(err)
	}
	return r.attached(&body)
}

// decodeMember is member with the decoder.
func (r *Reader) decodeMember(name string, free bool, body *attachment) error {
	switch {
	case free:
		return r.decodeValue(true)
	case freeMembers[name]:
		return r.decodeValue(true)
	case textMembers[name]:
		return r.decodeValue(false)
	}
	value, err := r.dec.ReadValue()
	if err != nil {
		return invalidText(err)
	}
	body.note(name, value)
	return nil
}
