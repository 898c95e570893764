// Package dynamodb has the check of fences in DynamoDB: the condition of the update.
package dynamodb

import (
	"context"
	"maps"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item has the attributes of an item, or the values of an expression.
type Item = map[string]types.AttributeValue

// Update sets the fence of an item, and what the caller appends to the expression, unless the item
// has a greater fence: then the error is a [types.ConditionalCheckFailedException]. It returns the
// new item.
func Update(
	ctx context.Context, db *dynamodb.Client, table string, key Item, fence uint64,
	set string, values Item,
) (Item, error) {
	all := Item{":fence": &types.AttributeValueMemberN{Value: strconv.FormatUint(fence, 10)}}
	maps.Copy(all, values)
	answer, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: key, ExpressionAttributeValues: all,
		UpdateExpression:    aws.String("SET fence = :fence" + set),
		ConditionExpression: aws.String("attribute_not_exists(fence) OR fence <= :fence"),
		ReturnValues:        types.ReturnValueAllNew,
		// a refusal has the newer fence in its item
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return answer.Attributes, nil
}
